"""A convex function of linear images and a ridge: what a lower bound needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ksparse.base.arrays import Matrix, Vector


@dataclass(frozen=True)
class Composite:
    """h(Ax) + ½ Σ ρⱼxⱼ², h convex, on float64 NumPy data."""

    A: Matrix
    value: Callable[[Vector], float]  # h at an image
    slope: Callable[[Vector], Vector]  # ∇h there
    ridge: Vector  # ρ
