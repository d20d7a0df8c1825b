"""Norms of vectors on a device that wait until one is asked for, and then are taken all at once: each by itself costs as much as all."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import array_api_compat as compat


class Norm(NamedTuple):
    """That of a vector: 1, 2 or ∞."""

    order: float
    x: Any


def taken(norms: list[Norm]) -> list[Any]:
    """In double precision, whose squares of single precision neither over- nor underflow, where the vectors lie."""
    found: list[Any] = [None] * len(norms)
    for order, kind in {(norm.order, norm.x.dtype) for norm in norms}:
        places = [i for i, norm in enumerate(norms) if norm.order == order and norm.x.dtype == kind]
        for i, value in zip(places, _of_order(order, [norms[i].x for i in places]), strict=True):
            found[i] = value
    return found


def _of_order(order: float, vectors: list[Any]) -> Any:
    xp = compat.array_namespace(vectors[0])
    if order == math.inf and len(vectors) == 1:  # nothing is added up
        return [xp.astype(xp.linalg.vector_norm(vectors[0], ord=order), xp.float64)]
    if not compat.is_torch_array(vectors[0]):
        return [xp.linalg.vector_norm(xp.astype(x, xp.float64, copy=False), ord=order) for x in vectors]
    import torch

    return torch._foreach_norm(vectors, order, dtype=torch.float64)  # no vector is turned to double precision for it
