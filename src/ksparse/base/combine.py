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
    if compat.is_torch_array(there):
        return torch.addcmul(x, d, there)
    return torch.add(x, d, alpha=there) if abs(there) <= torch.finfo(x.dtype).max else x + there * d  # which is infinite, no error


def against(x: Array, d: Array, l: float) -> Array:  # noqa: E741
    """x − d/l."""
    if not compat.is_torch_array(x):
        return x - d / l
    import torch

    there = _there(l)
    return torch.addcdiv(x, d, there, value=-1) if compat.is_torch_array(there) else x - d / there


def _there(a: Any) -> Any:
    """A number as an array meets it: one on its device, or a Python float."""
    if isinstance(a, Number):
        a = a.there if a.value is None else a.value
    return a if compat.is_torch_array(a) else float(a)
