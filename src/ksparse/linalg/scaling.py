"""Small linear algebra in numbers near 1: tolerances then mean the same in any units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.constraints import Linear


def unit_scales(diagonal: Vector) -> Vector:
    """√H_ii, and the largest of them for variables that H does not see."""
    scales: Vector = np.sqrt(np.maximum(diagonal, 0.0))
    largest = float(scales.max(initial=0.0))
    scales[scales <= 1e-150 * largest] = largest if largest > 0 else 1.0
    return scales


def unit_rows(M: Vector, v: Vector) -> tuple[Vector, Vector, Vector]:
    """Rows Mx (=, ≤) v with each scaled to largest entry 1, and what they were divided by."""
    size = np.abs(M).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    return M / size[:, None], v / size, size


def unit_constraints(linear: Linear, widen: Callable[[Vector], Vector]) -> dict[str, Vector | None]:
    """The rows as scipy names them, each scaled to size 1: HiGHS has absolute tolerances."""
    parts: dict[str, Vector | None] = {}
    for key, M, v in (("ub", linear.G, linear.h), ("eq", linear.E, linear.f)):
        rows, right, _ = unit_rows(M, v)
        parts[f"A_{key}"] = widen(rows) if v.size else None
        parts[f"b_{key}"] = right if v.size else None
    return parts
