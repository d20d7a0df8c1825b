"""Checks of arguments: each error names the argument, what was given and what is needed."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

import array_api_compat as compat
import numpy as np
import scipy.sparse

from ksparse.util.arrays import Array, Matrix, finite, is_array, like, namespace, to_numpy

LARGEST = 1e100  # largest entry of data whose squares are squared again
SMALLEST = 1e-120  # least allowed size of the largest entry of such data: the squares of smaller ones underflow


class SelfChecked:
    """Base class of losses and sets, whose methods a call compares with each other unless tests cover the class."""

    skip_self_check: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Skip the checks of the library's own classes; another class sets `skip_self_check` itself."""
        super().__init_subclass__(**options)
        if "skip_self_check" not in vars(cls):
            cls.skip_self_check = cls.__module__.startswith("ksparse.")


def check_number(
    value: Any, name: str, *, above: float = -math.inf, at_least: float = -math.inf, below: float = math.inf,
    at_most: float = math.inf,
) -> float:  # fmt: skip
    """Return a finite real number in a range, as a Python float."""
    scalar = isinstance(value, numbers.Real) or (is_array(value) and value.shape == () and not np.iscomplexobj(value))
    if isinstance(value, bool) or not scalar:
        raise TypeError(f"{name} must be a real number, got {_kind(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    if number <= above or number < at_least or number >= below or number > at_most:
        limits = zip((">", ">=", "<", "<="), (above, at_least, below, at_most), strict=True)
        allowed = " and ".join(f"{sign} {limit:g}" for sign, limit in limits if math.isfinite(limit))
        raise ValueError(f"{name} must be {allowed}, got {number:g}")
    return number


def check_radius(value: Any) -> float:
    """Return the radius of a ball: positive, and with a square that neither over- nor underflows."""
    radius = check_number(value, "radius", above=0)
    if not 1e-150 <= radius <= 1e150:
        raise ValueError(f"radius must be between 1e-150 and 1e+150, got {radius:g}: rescale the data")
    return radius


def check_integer(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Return an integer in low…high."""
    allowed = f"an integer >= {low}" if high is None else f"an integer in {low}..{high}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}, got {_kind(value)}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_flag(value: Any, name: str) -> bool:
    """Return a bool; refuse values that are only truthy or falsy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_n_jobs(value: Any) -> int | None:
    """Return n_jobs: None, or a nonzero integer; negative ones count back from all cores."""
    if value is None:
        return None
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value == 0:
        given = "0" if whole else _kind(value)
        raise (ValueError if whole else TypeError)(f"n_jobs must be None or an integer other than 0, got {given}")
    return int(value)


def check_callable(value: Any, name: str) -> Callable[..., Any]:
    """Return a callable."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {_kind(value)}")
    return value  # type: ignore[no-any-return]


def call_own(function: Callable[..., Any], name: str, x: Array, *more: Any) -> Any:
    """Call a user's function; an error names the function and the length of x."""
    try:
        return function(x, *more)
    except Exception as error:
        if type(error) not in (IndexError, RuntimeError, TypeError, ValueError):  # others take other arguments
            raise
        raise type(error)(f"{name} failed for an x of length {x.shape[0]}: {error}") from error


def check_piece(value: Any, kind: type, name: str) -> None:
    """Refuse anything but an instance of a class."""
    if not isinstance(value, kind):
        given = type(value).__name__
        if isinstance(value, type):
            given = f"the class {value.__name__}: write {value.__name__}(...)"
        raise TypeError(f"{name} must be an instance of ksparse.{kind.__name__}, got {given}")


def check_array(value: Any, name: str, ndim: int, *, allow_inf: bool = False) -> Array:
    """Return a dense real float32 or float64 array with `ndim` axes and no NaN; integers become float64."""
    sparse_tensor = getattr(value, "is_sparse", False) or "sparse" in str(getattr(value, "layout", ""))
    if sparse_tensor or scipy.sparse.issparse(value):
        needed = "a dense array or, for data matrices, a scipy.sparse one"
        raise TypeError(f"{name} must be {needed}, got {type(value).__name__}")
    ready = is_array(value) and not isinstance(value, np.ma.MaskedArray) and not compat.is_dask_array(value)
    array = value if ready else as_array(value, name)
    array = _real(array, name, "" if ready or array.dtype.kind in "iubf" else odd_column(value))
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} {'axis' if ndim == 1 else 'axes'}, got shape {tuple(array.shape)}")
    if 0 in tuple(array.shape):
        raise ValueError(f"{name} must not be empty, got shape {tuple(array.shape)}")
    if not finite(array):
        xp = namespace(array)
        if bool(xp.any(xp.isnan(array))):
            raise ValueError(f"{name} must not contain NaN")
        if not allow_inf:
            raise ValueError(f"{name} must be finite, but contains inf")
    return array


def check_vector(value: Any, name: str, n: int | None = None, *, kind: Array = None, allow_inf: bool = False) -> Array:
    """Return a vector of length n, converted to the namespace, dtype and device of `kind` if given."""
    vector = check_array(value, name, 1, allow_inf=allow_inf)
    if n is not None and vector.shape[0] != n:
        raise ValueError(f"{name} must have length {n}, got {vector.shape[0]}")
    return vector if kind is None else like(vector, kind)


def check_row_weights(value: Any, m: int, kind: Array) -> Array | None:
    """Return `sample_weight`: one weight >= 0 per row, not all 0; None if none are given."""
    if value is None:
        return None
    weight = check_vector(value, "sample_weight", m, kind=kind)
    xp = namespace(weight)
    if float(xp.min(weight)) < 0 or float(xp.max(weight)) == 0:
        raise ValueError("sample_weight must be >= 0 with at least one positive entry")
    return weight


def check_ridge(value: Any, n: int, kind: Array) -> Array | None:
    """Return `ridge` as one number >= 0 per column; None if it is 0."""
    if isinstance(value, list | tuple):
        value = as_array(value, "ridge")
    if not np.ndim(value) and check_number(value, "ridge", at_least=0) == 0:
        return None
    xp = namespace(kind)
    given = value if np.ndim(value) else xp.full((n,), float(value), dtype=kind.dtype)
    ridge = check_vector(given, "ridge", n, kind=kind)
    if float(xp.min(ridge)) < 0:
        raise ValueError(f"ridge must be >= 0, got {float(xp.min(ridge)):g}")
    return ridge


def check_bound(value: Any, name: str) -> Array | float:
    """Return a bound: one number, or a vector with one number per variable; ±inf for no bound."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if math.isnan(float(value)):
            raise ValueError(f"{name} must not be NaN")
        return float(value)
    return check_vector(value, name, allow_inf=True)


def check_indices(value: Any, name: str) -> np.ndarray[Any, Any]:
    """Return distinct nonnegative indices, sorted."""
    if not (is_array(value) or isinstance(value, Iterable)):
        raise TypeError(f"{name} must be a list of integer indices, got {_kind(value)}")
    given = as_array(value if is_array(value) else list(value), name)
    if given.size == 0:
        return np.zeros(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a list of integer indices, got dtype {given.dtype} and shape {given.shape}")
    if given.min() < 0:
        raise ValueError(f"{name} must be indices >= 0, got {given.min()}")
    distinct = np.unique(given)
    if distinct.size != given.size:
        raise ValueError(f"{name} must not repeat an index")
    return np.asarray(distinct, dtype=np.intp)


def check_matrix(value: Any, name: str) -> Matrix:
    """Return a nonempty real matrix: dense, scipy.sparse (as CSR or CSC), or any object with .shape, @ and .T."""
    if scipy.sparse.issparse(value):
        matrix = value if value.format in ("csr", "csc") else value.tocsr()
        entries = _real(matrix.data, name)
        if matrix.dtype != entries.dtype:
            matrix = matrix.astype(entries.dtype)
        _nonempty(matrix.shape, name)
        if not np.isfinite(entries).all():
            raise ValueError(f"{name} must be finite, but contains NaN or inf")
        return matrix
    known = is_array(value) or hasattr(value, "__array__")
    if not known and hasattr(value, "__matmul__") and hasattr(value, "shape"):  # an operator
        if getattr(value, "dtype", None) is not None:
            _real_dtype(np.dtype(value.dtype), name)
        _nonempty(tuple(value.shape), name)
        return value
    return check_array(value, name, 2)


def check_size(value: Any, name: str, labels: Any = None, *, least: float = 0.0, most: float = LARGEST) -> None:
    """Refuse entries above `most`, whose squares could overflow, and data whose largest entry is below `least`.

    labels : column names for the message. The entries of an operator are not checked.
    """
    sparse = scipy.sparse.issparse(value)
    entries = value.data if sparse else value
    if not is_array(entries) or 0 in entries.shape:
        return
    xp = namespace(entries)
    top = max(float(xp.max(entries)), -float(xp.min(entries)))
    if top > most:
        where = ""
        if len(value.shape) == 2:
            tops = abs(value).max(axis=0).toarray().ravel() if sparse else to_numpy(xp.max(xp.abs(value), axis=0))
            column = int(np.argmax(tops))
            where = f" in column {column if labels is None else repr(str(labels[column]))}"
        raise ValueError(f"absolute values in {name} must not exceed {most:g}, got {top:g}{where}: rescale the data")
    if 0.0 < top < least:
        found = f"must be at least {least:g}, got {top:g}"
        raise ValueError(f"the largest absolute value in {name} {found}: rescale the data")


def check_squares(value: Any, name: str) -> None:
    """Refuse data whose squares overflow, or all underflow, in their precision."""
    entries = value.data if scipy.sparse.issparse(value) else value
    if is_array(entries):
        most = 1e150 if float(namespace(entries).finfo(entries.dtype).eps) < 1e-10 else 1e15
        check_size(value, name, least=1 / most, most=most)


def check_adjoint(value: Any, name: str) -> None:
    """Refuse an operator without products with its transpose, tested by one product with 0."""
    if is_array(value) or scipy.sparse.issparse(value):
        return
    m, n = value.shape
    try:
        product = value.T @ np.zeros(m)
    except Exception as error:  # an operator may raise any exception
        raised = f"{type(value).__name__} raised {type(error).__name__}: {error}; a LinearOperator needs rmatvec"
        raise TypeError(f"{name} must offer products with its transpose, {name}.T @ y: {raised}") from error
    if tuple(np.shape(product)) != (n,):
        raise ValueError(f"{name}.T @ y must have shape ({n},), got {tuple(np.shape(product))}")


def as_array(value: Any, name: str) -> np.ndarray[Any, Any]:
    """Return a value as a NumPy array of any dtype; refuse masked arrays and ragged rows."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: fill or drop the masked entries first")
    try:
        return to_numpy(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers whose rows have one length: {error}") from error


def _nonempty(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{name} must be a nonempty matrix, got shape {shape}")


def odd_column(table: Any) -> str:
    """Return a text that names the first column of a table without numbers and what it holds; "" if there is none."""
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        return ""
    for column in table.columns:
        entries = np.asarray(table[column])
        if entries.dtype.kind in "iubfc":
            continue
        held = "dates or times" if entries.dtype.kind in "mM" else ""
        try:
            entries.astype(float)
        except (TypeError, ValueError):
            first = next(entry for entry in entries.flat if not isinstance(entry, numbers.Number))
            held = f"objects of type {type(first).__name__}"
            if isinstance(first, str | bytes):
                held = "text"
            elif isinstance(first, datetime.date | datetime.timedelta):
                held = "dates or times"
        if held:
            return f"column {str(column)!r} holds {held}"
    return ""


def _real(array: Array, name: str, why: str = "") -> Array:
    """Return the array as float32 or float64 (integers and booleans as float64); refuse other dtypes."""
    if isinstance(array, np.ndarray) and array.dtype in (np.float64, np.float32):
        return array
    xp = namespace(array)
    if compat.is_numpy_array(array):
        _real_dtype(array.dtype, name, why)
    elif not (xp.isdtype(array.dtype, ("integral", "bool")) or array.dtype in (xp.float32, xp.float64)):
        raise TypeError(f"{name} must be float32 or float64 (integers are converted), got dtype {array.dtype}")
    return array if xp.isdtype(array.dtype, "real floating") else xp.astype(array, xp.float64)


def _real_dtype(dtype: np.dtype[Any], name: str, why: str = "") -> None:
    if dtype.kind not in "iub" and dtype not in (np.float32, np.float64):
        advice = {"U": "it holds text", "S": "it holds text", "O": "convert its entries to numbers first"}
        advice |= dict.fromkeys("mM", "it holds dates or times")
        why = ": " + (why or advice[dtype.kind]) if why or dtype.kind in advice else ""
        raise TypeError(f"{name} must be float32 or float64 (integers are converted), got dtype {dtype}{why}")


def _kind(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def as_number(value: Any, what: str) -> float:
    """Return the result of a user's function as a float."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{what} must return one number, got {type(value).__name__}") from error


def require_shape(value: Any, shape: Any, what: str) -> None:
    """Raise ValueError if the result of a user's function does not have the given shape."""
    found = getattr(value, "shape", None)
    if found is None or tuple(found) != tuple(shape):
        given = type(value).__name__ if found is None else tuple(found)
        raise ValueError(f"{what} must have shape {tuple(shape)}, got {given}")
