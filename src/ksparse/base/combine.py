"""Sums of vectors and multiples of vectors: of PyTorch's in one kernel each, where NumPy makes a vector for every sign in the formula."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat

from ksparse.base.arrays import Array
from ksparse.base.scalars import Number


def along(x: Array, a: float, d: Array) -> Array:
    """x + a·d."""
    if not compat.is_torch_array(x):
        return x + a * d
    import torch

    there = _there(a)
    return torch.add(x, d, alpha=there) if isinstance(there, float | int) else torch.addcmul(x, d, there)


def against(x: Array, d: Array, l: float) -> Array:  # noqa: E741
    """x − d/l."""
    if not compat.is_torch_array(x):
        return x - d / l
    import torch

    there = _there(l)
    return x - d / there if isinstance(there, float | int) else torch.addcdiv(x, d, there, value=-1)


def _there(a: Any) -> Any:
    """A number as an array meets it."""
    if not isinstance(a, Number):
        return a
    return a.there if a.value is None else a.value
