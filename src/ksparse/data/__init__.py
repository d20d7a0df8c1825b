"""Data matrices of every kind: in memory, sparse, by blocks, dask, on a device, or operators."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse

from ksparse.data.array import Dense, root_mean_square
from ksparse.data.blocks import Blocks
from ksparse.data.dask import DaskRows
from ksparse.data.design import Design
from ksparse.data.device import Device
from ksparse.data.operator import Operator
from ksparse.data.sparse import Sparse
from ksparse.util.arrays import Array, Matrix, is_array, namespace, on_device, to_float64
from ksparse.util.checks import check_adjoint, check_matrix

__all__ = ["Blocks", "DaskRows", "Dense", "Design", "Device", "Operator", "Sparse", "by_blocks", "check_data",
           "design_of", "in_double", "read_in_double", "root_mean_square"]  # fmt: skip

LARGE = 2**22  # entries from which single-precision data are not copied to double precision


def design_of(A: Matrix) -> Design:
    """Return the design of a checked matrix of any kind."""
    if isinstance(A, Design):
        return A
    if scipy.sparse.issparse(A):
        return Sparse(A)
    return Dense(A) if is_array(A) else Operator(A)


def check_data(value: Any, name: str) -> Matrix:
    """Return a nonempty real matrix as `check_matrix` does, or data read by blocks of rows, after a first pass over it.

    Arrays and sparse matrices are returned as they are: a loss multiplies by them directly, and a user's own loss
    expects them.
    """
    design = _read_by_blocks(value, name)
    if design is None:
        matrix = check_matrix(value, name)
        check_adjoint(matrix, name)
        return design_of(matrix).unwrapped
    design.check(name)
    return design


def in_double(value: Any) -> Any:
    """Return data for small exact solves in double precision, without a copy of large data."""
    if isinstance(value, Design):
        return value.as_float64()
    return (read_in_double(value) if is_array(value) else None) or to_float64(value)


def read_in_double(value: Array) -> Design | None:
    """Return a design that reads a large array in double precision without a copy; None for other arrays."""
    if value.ndim == 2 and value.shape[0] * value.shape[1] >= LARGE:
        if not compat.is_numpy_array(value):
            return Device(value)
        if value.dtype == np.float32:
            return Blocks(value).as_float64()
    return None


def by_blocks(value: Any, name: str) -> Design | None:
    """Return a design for data to be read by blocks of rows without a copy, after a first pass; None for other data."""
    if type(value).__module__.startswith("dask.dataframe"):
        value = value.to_dask_array(lengths=True)
    if isinstance(value, np.ndarray):
        plain = value.ndim == 2 and value.size >= LARGE and not isinstance(value, np.ma.MaskedArray)
        if plain and (value.dtype == np.float32 or (isinstance(value, np.memmap) and value.dtype == np.float64)):
            value = Blocks(value)
    elif is_array(value) and not compat.is_dask_array(value) and value.ndim == 2:
        value = _in_place(value, name)
    return None if _read_by_blocks(value, name) is None else check_data(value, name)


def _read_by_blocks(value: Any, name: str) -> Design | None:
    if isinstance(value, Design):
        return value
    if type(value).__module__.startswith("dask.array"):
        if len(value.shape) != 2:
            raise ValueError(f"{name} must have 2 axes, got shape {tuple(value.shape)}")
        _check_dtype(value, name)
        return DaskRows(value, name)
    known = is_array(value) or scipy.sparse.issparse(value) or hasattr(value, "__matmul__") or hasattr(value, "iloc")
    sliced = all(hasattr(value, part) for part in ("shape", "dtype", "__getitem__"))
    if not known and sliced and len(value.shape) == 2:
        _check_dtype(value, name)
        return Blocks(value)
    return None


def _check_dtype(value: Any, name: str) -> None:
    dtype = np.dtype(value.dtype)
    if dtype.kind not in "iub" and dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"{name} must be float32 or float64 (integers are converted), got dtype {dtype}")


def _in_place(value: Array, name: str) -> Any:
    """Return a design of an array of another library on a device, or large on the host; else the array."""
    xp = namespace(value)
    numbers = value.dtype in (xp.float32, xp.float64)
    if on_device(value) and not numbers:
        raise TypeError(f"{name} must be float32 or float64 on a device, got dtype {value.dtype}")
    return Device(value) if on_device(value) or (numbers and value.shape[0] * value.shape[1] >= LARGE) else value
