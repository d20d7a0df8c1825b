"""Array operations for NumPy, PyTorch and every other array-API namespace, and the k largest entries of a vector.

Sums, products and norms are Python floats, because a NumPy scalar times an array of another library would silently
change its namespace. Those of PyTorch arrays on a GPU stay there, as zero-dimensional arrays in double precision,
because reading one waits for the GPU. A comparison reads such an array; `read` reads several at once.
"""

from __future__ import annotations

import math
from copy import copy
from functools import cache, cached_property
from typing import Any, TypeVar

import array_api_compat as compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
import scipy.sparse

from ksparse.util.resources import one_thread

Array = Any  # a dense array of some array-API namespace
Vector = np.ndarray[Any, Any]  # a NumPy array, float64 but for indices and masks
T = TypeVar("T")
Matrix = Any  # an Array with two axes, a scipy.sparse matrix, or anything with .shape, @ and .T

LONG, PART, FEW = 2**15, 512, 2**21  # on a GPU a longer vector is ranked in chunks of PART entries if n·k ≤ FEW
ROWS, FOLDED = 16, 4  # a vector is folded into ROWS rows if that leaves at least FOLDED·k columns


def namespace(x: Array) -> Any:
    """Return the array-API namespace of x."""
    kind = type(x)
    if kind not in _namespaces:  # remembered: `array_namespace` costs as much as a small product
        _namespaces[kind] = compat.array_namespace(x)
    return _namespaces[kind]


_namespaces: dict[type, Any] = {np.ndarray: numpy_namespace}


def is_array(x: object) -> bool:
    """Return whether x is a dense array, used without conversion (NumPy, PyTorch, CuPy, JAX, array-api-strict)."""
    return bool(compat.is_array_api_obj(x)) and not scipy.sparse.issparse(x)


def on_device(x: Array) -> bool:
    """Return whether x lies on a GPU, where reading a number waits for the device."""
    return bool(compat.is_cupy_array(x) or (compat.is_torch_array(x) and x.device.type != "cpu"))


def _stays(x: Array) -> bool:
    """Return whether sums and norms of x stay on its device."""
    return compat.is_torch_array(x) and on_device(x)


def read(*numbers: float) -> list[float]:
    """Return numbers as floats; those on a device are read together."""
    there: list[Any] = [one for one in numbers if compat.is_torch_array(one)]
    if not there:
        return [float(one) for one in numbers]
    import torch

    values = iter(torch.stack([one.to(torch.float64) for one in there]).tolist())
    return [next(values) if compat.is_torch_array(one) else float(one) for one in numbers]


def larger(a: float, b: float) -> float:
    """Return the larger of two numbers; numbers on a device are not read."""
    for one, other in ((a, b), (b, a)):
        if compat.is_torch_array(one):
            xp: Any = namespace(one)
            found: float = xp.maximum(one, other) if compat.is_torch_array(other) else xp.clip(one, other, None)
            return found
    return max(a, b)


def axpy(x: Array, a: float, d: Array) -> Array:
    """Return x + a·d, in one kernel for PyTorch."""
    if not compat.is_torch_array(x):
        return x + a * d
    import torch

    a = float(a)
    return torch.add(x, d, alpha=a) if abs(a) <= torch.finfo(x.dtype).max else x + a * d  # infinite, not an error


def minus_scaled(x: Array, d: Array, l: float) -> Array:  # noqa: E741
    """Return x − d/l, in one kernel for PyTorch."""
    return axpy(x, -1.0 / l, d) if compat.is_torch_array(x) else x - d / l


def norms(*vectors: Array) -> list[float]:
    """Return ‖v‖₂ of each vector; on a GPU in one kernel for all if they are in single precision."""
    first = vectors[0]
    if not _stays(first) or first.dtype == namespace(first).float64:
        return [norm(one) for one in vectors]
    import torch

    return list(torch._foreach_norm(list(vectors), 2, dtype=torch.float64))


def like(value: Any, x: Array) -> Array:
    """Return the array `value` in the namespace, dtype and device of x, copied only if one of them differs."""
    if compat.is_numpy_array(x):
        return np.asarray(to_numpy(value), dtype=x.dtype)
    xp = namespace(x)
    if not (is_array(value) and namespace(value) is xp):
        value = xp.asarray(np.array(to_numpy(value)))  # a fresh copy: PyTorch refuses read-only memory
    return compat.to_device(xp.astype(value, x.dtype, copy=False), compat.device(x))


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Return x as a NumPy array on the CPU, with its dtype."""
    if type(x) is np.ndarray:
        return x
    if compat.is_torch_array(x):
        return np.asarray(x.detach().cpu().numpy())
    if compat.is_cupy_array(x):
        return np.asarray(x.get())
    if compat.is_dask_array(x):
        lazy: Any = x  # dask is not typed
        return np.asarray(lazy.compute())
    if is_array(x) and not compat.is_numpy_array(x):
        return np.asarray(np.from_dlpack(x))
    return np.asarray(x)


def to_float64(x: Any) -> Any:
    """Return a vector or matrix as NumPy float64; sparse matrices stay sparse, operators are returned as they are."""
    if scipy.sparse.issparse(x):
        return x.astype(np.float64, copy=False)
    return np.asarray(to_numpy(x), dtype=np.float64) if is_array(x) else x


def clip(x: Array, low: float, high: float) -> Array:
    """Return x with its entries moved into [low, high]."""
    if type(x) is not np.ndarray:
        return namespace(x).clip(x, low, high)
    y = np.maximum(x, low)
    return np.minimum(y, high, out=y)


def at_least(x: Array, low: float) -> Array:
    """Return x with its entries raised to at least `low`."""
    return np.maximum(x, low) if type(x) is np.ndarray else namespace(x).clip(x, low, None)


def column_dots(X: Array, Y: Array) -> Array:
    """Return ⟨Xⱼ, Yⱼ⟩ for each column j."""
    return np.einsum("ij,ij->j", X, Y) if type(X) is np.ndarray else namespace(X).sum(X * Y, axis=0)


def zeros_like(x: Array) -> Array:
    """Return zeros of the shape, namespace, dtype and device of x."""
    return namespace(x).zeros_like(x)


def sum_of(x: Array) -> float:
    """Return Σ xᵢ."""
    if type(x) is np.ndarray:
        return float(np.sum(x))
    xp = namespace(x)
    return xp.sum(x, dtype=xp.float64) if _stays(x) else float(xp.sum(x))


def dot(x: Array, y: Array) -> float:
    """Return ⟨x, y⟩."""
    return float(np.dot(x, y)) if type(x) is np.ndarray else sum_of(x * y)


def sqnorm(x: Array) -> float:
    """Return ‖x‖²."""
    if type(x) is np.ndarray:
        return float(np.dot(x, x))
    if not _stays(x):
        return sum_of(x * x)
    length = _norm_there(x, 2)
    return length * length


def _norm_there(x: Array, order: float) -> float:
    """Return a norm on the device of x, in double precision, in which squares of single precision do not overflow."""
    xp = namespace(x)
    return xp.linalg.vector_norm(x, ord=order, dtype=xp.float64)  # type: ignore[no-any-return]


def norm(x: Array) -> float:
    """Return ‖x‖₂; x is scaled to size 1 first if its square over- or underflows."""
    if type(x) is not np.ndarray and _stays(x):
        xp = namespace(x)
        if x.dtype != xp.float64:
            return _norm_there(x, 2)
        most = xp.clip(_norm_there(x, math.inf), float(xp.finfo(x.dtype).smallest_normal), None)
        return xp.where(xp.isfinite(most), most * _norm_there(x / most, 2), most)  # type: ignore[no-any-return]
    with np.errstate(over="ignore"):
        square = sqnorm(x)
    if 1e-30 < square < 1e30:  # far from the range limits of float32 too
        return math.sqrt(square)
    largest = norm_inf(x)
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(sqnorm(x / largest)))


def norm_1(x: Array) -> float:
    """Return ‖x‖₁."""
    return _norm_there(x, 1) if type(x) is not np.ndarray and _stays(x) else sum_of(namespace(x).abs(x))


def norm_inf(x: Array) -> float:
    """Return max |xᵢ|; 0 if x is empty, NaN if an entry is NaN."""
    if not x.shape[0]:
        return 0.0
    if type(x) is not np.ndarray and _stays(x):
        return _norm_there(x, math.inf)
    xp = namespace(x)
    return float(xp.max(xp.abs(x)))


def finite(x: Array) -> bool:
    """Return whether no entry is NaN or infinite."""
    xp = namespace(x)
    with np.errstate(over="ignore", invalid="ignore"):
        if type(x) is np.ndarray and x.ndim == 1 and math.isfinite(np.dot(x, x)):  # fast path: one call
            return True
        with one_thread():  # one product of large data: threads would spin long after it
            sums = x @ xp.ones_like(x[0, :]) if x.ndim == 2 else xp.sum(x)  # not finite if an entry is not
    return any(bool(xp.all(xp.isfinite(part))) for part in (sums, x))  # sums of finite entries may overflow


def epsilon(x: Array) -> float:
    """Return the rounding unit of x's dtype."""
    return float(namespace(x).finfo(x.dtype).eps)


def largest_safe_entry(x: Array) -> float:
    """Return the largest safe size of an entry of x's dtype: larger ones have sums of squares that may overflow."""
    return 1e-3 * math.sqrt(float(namespace(x).finfo(x.dtype).max))


def zero_outside(x: Array, mask: Array) -> Array:
    """Return x with entries set to 0 where the mask does not hold."""
    return namespace(x).where(mask, x, _nothing(x))


def _nothing(x: Array) -> Array:
    """Return zero, of the kind of x; for PyTorch a cached scalar."""
    return _zero(x.dtype, x.device) if compat.is_torch_array(x) else zeros_like(x)


@cache
def _zero(dtype: Any, device: Any) -> Array:
    import torch

    return torch.zeros((), dtype=dtype, device=device)


def indices_of(mask: Array) -> np.ndarray[Any, Any]:
    """Return the indices where a mask holds, as sorted NumPy integers."""
    return np.flatnonzero(to_numpy(mask))


def take(x: Array, support: np.ndarray[Any, Any]) -> Array:
    """Return the entries of x on a support, in the support's order."""
    if compat.is_numpy_array(x):
        return x[support]
    xp = namespace(x)
    return xp.take(x, xp.asarray(support, device=compat.device(x)), axis=0)


def embed(z: Array, support: np.ndarray[Any, Any], n: int) -> Array:
    """Return the vector of length n that is z on the support and 0 elsewhere: the inverse of `take`."""
    if type(z) is np.ndarray:
        whole = np.zeros(n, dtype=z.dtype)
        whole[support] = z
        return whole
    xp = namespace(z)
    seat = np.full(n, support.size)
    seat[support] = np.arange(support.size)
    return take(xp.concat([z, xp.zeros(1, dtype=z.dtype, device=compat.device(z))]), seat)


def copy_with(piece: T, **changes: Any) -> T:
    """Return a copy of an object with other attributes; cached properties of the copy are cleared."""
    twin = copy(piece)
    for name in _computed(type(piece)):  # type: ignore[arg-type]  # a class is hashable
        twin.__dict__.pop(name, None)
    for name, value in changes.items():
        setattr(twin, name, value)
    return twin


@cache
def _computed(kind: type) -> tuple[str, ...]:
    """Return the names of the cached properties of a class."""
    return tuple(name for base in kind.__mro__ for name, one in vars(base).items() if isinstance(one, cached_property))


def top_k(size: Array, k: int) -> Array:
    """Return the mask of the k largest entries; ties go to the lowest index. Raise FloatingPointError for NaN.

    On a GPU nothing is read: NaN counts as large there, and appears wherever the entries are used.
    """
    xp = namespace(size)
    n = size.shape[0]
    if k < n and type(size) is np.ndarray:
        return _top_k_here(size, k)
    if k < n and on_device(size) and compat.is_torch_array(size):
        return _top_k_there(size, k)
    if bool(xp.any(xp.isnan(size))):
        raise FloatingPointError("top-k of a vector with NaN")
    if k >= n:
        return xp.ones_like(size, dtype=xp.bool)
    threshold = _kth_largest(size, k)
    above, tied = size > threshold, size == threshold
    seats = k - int(xp.sum(xp.astype(above, xp.int64)))
    return above | (tied & (xp.cumulative_sum(xp.astype(tied, xp.int64)) <= seats))


def without_largest(x: Array, k: int) -> Array:
    """Return x with its k entries of largest absolute value set to 0; ties go to the lowest index."""
    if k < x.shape[0] and on_device(x) and compat.is_torch_array(x):
        return x.index_fill(0, _places_there(abs(x), k), 0)
    xp = namespace(x)
    return xp.where(top_k(xp.abs(x), k), _nothing(x), x)


def top_k_indices(size: Vector, k: int) -> Vector:
    """Return the indices of the k largest entries of a NumPy vector without NaN, in no order.

    The k columns of largest maxima of the vector, folded into rows, hold all k largest entries: finding them first
    takes a third of the time of a full partition for small k and n in the thousands.
    """
    wide = size.size // ROWS
    if wide < FOLDED * k:
        return np.asarray(size.argpartition(size.size - k)[size.size - k :])
    folded = ROWS * wide
    columns = size[:folded].reshape(ROWS, wide).max(axis=0).argpartition(wide - k)[wide - k :]
    places = np.concatenate([(columns + wide * np.arange(ROWS)[:, None]).ravel(), np.arange(folded, size.size)])
    return np.asarray(places[size[places].argpartition(places.size - k)[places.size - k :]])


def _top_k_here(size: Vector, k: int) -> Vector:
    """Return the mask of the k largest entries of a NumPy vector, testing only the largest entries for NaN and ties."""
    largest = np.partition(size, size.size - k)[size.size - k :]  # NaN counts as large
    if np.isnan(largest).any():
        raise FloatingPointError("top-k of a vector with NaN")
    mask: Vector = size >= largest[0]
    tied = np.count_nonzero(mask) - k
    if tied:
        mask[np.flatnonzero(size == largest[0])[-tied:]] = False
    return mask


def _top_k_there(size: Array, k: int) -> Array:
    """Return the mask of the k largest entries of a vector on a GPU."""
    import torch

    return torch.zeros_like(size, dtype=torch.bool).index_fill_(0, _places_there(size, k), True)


def _places_there(size: Array, k: int) -> Array:
    """Return the indices of the k largest entries of a vector on a GPU; ties go to the lowest index.

    A long vector is ranked in chunks first, then the largest entries of all chunks.
    """
    import torch

    n, wide = size.shape[0], max(PART, 4 * k)
    if n < LONG or n < 8 * wide or n * k > FEW:
        return torch.topk(size, k, sorted=False).indices
    parts = -(-n // wide)
    padded = torch.nn.functional.pad(size, (0, parts * wide - n), value=-math.inf)
    largest, places = torch.topk(padded.reshape(parts, wide), k, dim=1, sorted=False)
    best = torch.topk(largest.reshape(-1), k, sorted=False).indices
    return places.reshape(-1)[best] + wide * (best // k)


def _kth_largest(size: Array, k: int) -> float:
    """Return the k-th largest value, 1 ≤ k ≤ n, in O(n) if the namespace has a selection routine."""
    if compat.is_torch_array(size):
        return float(namespace(size).topk(size, k, sorted=True).values[-1])
    return float(namespace(size).sort(size, descending=True)[k - 1])
