"""The paper's synthetic instances (Sec. 6), drawn in a fixed order so that figures can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.util.checks import check_integer


@dataclass(frozen=True)
class SparseRegression:
    """``½‖Ax − b‖²`` with at most k nonzeros, x ≥ 0 on `nonnegative`; x_true made the data.

    Parameters
    ----------
    A : ndarray
        The data.
    b : ndarray
        The target.
    k : int
        Nonzeros allowed.
    x_true : ndarray
        What made the data.
    nonnegative : ndarray of int
        Whose signs are known.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.table5().k
    20
    """

    A: np.ndarray[Any, Any]
    b: np.ndarray[Any, Any]
    k: int
    x_true: np.ndarray[Any, Any]
    nonnegative: np.ndarray[Any, Any]


def table2(i: int = 1, seed: int = 0) -> SparseRegression:
    """The instance of Table 2: (m, n, k) = (720i, 2560i, 80i), unit Gaussian columns, b = Ax̄ − 0.01ε with x̄ k-sparse.

    Parameters
    ----------
    i : int, default=1
        The size.
    seed : int, default=0
        Of the random numbers.

    Returns
    -------
    SparseRegression
        The instance.

    Raises
    ------
    ValueError, TypeError
        If i is not a whole number from 1.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.table2().A.shape
    (720, 2560)
    """
    i = check_integer(i, "i", 1)
    m, n, k = 720 * i, 2560 * i, 80 * i
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    A /= np.linalg.norm(A, axis=0)
    x_true = np.zeros(n)
    values = rng.standard_normal(k)  # before the support, as the published figures of seed 0 were drawn
    x_true[rng.choice(n, k, replace=False)] = values
    b = A @ x_true - 0.01 * rng.standard_normal(m)
    return SparseRegression(A, b, k, x_true, np.zeros(0, dtype=np.intp))


def table5(i: int = 1, seed: int = 0) -> SparseRegression:
    """The instance of Table 5: (m, n, k) = (180i, 640i, 20i), correlated unit columns, dense x̄, ‖b‖ = 1, a tenth of the signs known.

    Parameters
    ----------
    i : int, default=1
        The size.
    seed : int, default=0
        Of the random numbers.

    Returns
    -------
    SparseRegression
        The instance.

    Raises
    ------
    ValueError, TypeError
        If i is not a whole number from 1.

    Examples
    --------
    >>> import ksparse as ks
    >>> instance = ks.datasets.table5()
    >>> instance.A.shape, instance.nonnegative.size
    ((180, 640), 64)
    """
    i = check_integer(i, "i", 1)
    m, n, k = 180 * i, 640 * i, 20 * i
    rng = np.random.default_rng(seed)
    columns = np.empty((n, m))
    columns[0] = rng.standard_normal(m)
    for j in range(1, n):  # each column leans on the one before: covariance 0.5^|i−j|
        columns[j] = 0.5 * columns[j - 1] + np.sqrt(0.75) * rng.standard_normal(m)
    A = np.ascontiguousarray(columns.T)
    A /= np.linalg.norm(A, axis=0)
    x_true = rng.uniform(-1, 1, n)
    b = A @ x_true + rng.standard_normal(m)
    return SparseRegression(A, b / np.linalg.norm(b), k, x_true, np.arange(n // 10))
