"""Synthetic instances of the paper (Sec. 6); published figures depend on the order of the random draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.util.checks import check_integer


@dataclass(frozen=True)
class SparseRegression:
    """Regression problem ``½‖Ax − b‖²`` with at most k nonzeros and x ≥ 0 on `nonnegative`.

    Parameters
    ----------
    A : ndarray
        The data.
    b : ndarray
        The target.
    k : int
        Maximum number of nonzeros.
    x_true : ndarray
        True coefficients.
    nonnegative : ndarray of int
        Indices of nonnegative coefficients.

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
    """Return the instance of Table 2: (m, n, k) = (720i, 2560i, 80i), unit Gaussian columns, b = Ax̄ − 0.01ε.

    Parameters
    ----------
    i : int, default=1
        Size factor.
    seed : int, default=0
        Seed of the random numbers.

    Returns
    -------
    SparseRegression
        The instance.

    Raises
    ------
    ValueError, TypeError
        If i is not a positive integer.

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
    values = rng.standard_normal(k)  # drawn before the support
    x_true[rng.choice(n, k, replace=False)] = values
    b = A @ x_true - 0.01 * rng.standard_normal(m)
    return SparseRegression(A, b, k, x_true, np.zeros(0, dtype=np.intp))


def table5(i: int = 1, seed: int = 0) -> SparseRegression:
    """Return the instance of Table 5: (m, n, k) = (180i, 640i, 20i), correlated unit columns, dense x̄, ‖b‖ = 1.

    The first tenth of the coefficients is constrained to be nonnegative.

    Parameters
    ----------
    i : int, default=1
        Size factor.
    seed : int, default=0
        Seed of the random numbers.

    Returns
    -------
    SparseRegression
        The instance.

    Raises
    ------
    ValueError, TypeError
        If i is not a positive integer.

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
    for j in range(1, n):  # covariance 0.5^|i−j|
        columns[j] = 0.5 * columns[j - 1] + np.sqrt(0.75) * rng.standard_normal(m)
    A = np.ascontiguousarray(columns.T)
    A /= np.linalg.norm(A, axis=0)
    x_true = rng.uniform(-1, 1, n)
    b = A @ x_true + rng.standard_normal(m)
    return SparseRegression(A, b / np.linalg.norm(b), k, x_true, np.arange(n // 10))


DAYS_A_YEAR = 250
SECTORS = 33  # as on the Tokyo Stock Exchange
STYLES = 5


@dataclass(frozen=True)
class Assets:
    """Mean and covariance of asset returns per period, and the returns themselves if known.

    Parameters
    ----------
    V : ndarray
        Covariances.
    r : ndarray
        Means.
    names : list of str
        Names of the assets.
    returns : ndarray or None, default=None
        One row per period.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.datasets.Assets.from_returns(np.array([[0.1, 0.0], [0.0, 0.1]]), ["A", "B"]).r
    array([0.05, 0.05])
    """

    V: np.ndarray[Any, Any]
    r: np.ndarray[Any, Any]
    names: list[str]
    returns: np.ndarray[Any, Any] | None = None

    @classmethod
    def from_returns(cls, returns: np.ndarray[Any, Any], names: list[str]) -> Assets:
        """Return assets with sample mean and covariance."""
        V, r = np.atleast_2d(np.cov(returns, rowvar=False)), returns.mean(axis=0)
        flat = np.sqrt(np.diag(V)) <= 10 * np.finfo(float).eps * np.abs(r)  # constant up to rounding
        V[flat], V[:, flat] = 0.0, 0.0
        return cls(V, r, names, returns)


def factor_model(n_assets: int = 1338, n_days: int = 2148, seed: int = 0) -> Assets:
    """Return daily returns from a factor model with fat tails; the default shape is that of Table 4.

    Annual volatilities are 20 % (market), 10 % (sectors), 6 % (styles) and around 24 % (idiosyncratic, lognormal).
    Betas are around 1. The annual mean is 6 % per unit of beta plus an idiosyncratic part with standard deviation 3 %.
    Innovations follow Student's t with 5 degrees of freedom.

    Parameters
    ----------
    n_assets : int, default=1338
        Number of assets.
    n_days : int, default=2148
        Number of days.
    seed : int, default=0
        Seed of the random numbers.

    Returns
    -------
    Assets
        Returns, means, covariances and names.

    Raises
    ------
    ValueError, TypeError
        If a number is not an integer, or too small.

    Examples
    --------
    >>> import ksparse as ks
    >>> assets = ks.datasets.factor_model(30, 250)
    >>> assets.returns.shape, assets.V.shape
    ((250, 30), (30, 30))
    """
    n, days = check_integer(n_assets, "n_assets", 1), check_integer(n_days, "n_days", 2)
    rng = np.random.default_rng(seed)
    day = np.sqrt(DAYS_A_YEAR)

    def shocks(*shape: int) -> np.ndarray[Any, Any]:
        return np.asarray(rng.standard_t(5, shape) * np.sqrt(3 / 5))  # unit variance

    beta = 1.0 + 0.3 * rng.standard_normal(n)
    own = 0.24 * np.exp(0.35 * rng.standard_normal(n)) / day
    mean = (0.06 * beta + 0.03 * rng.standard_normal(n)) / DAYS_A_YEAR
    sector, style = rng.integers(SECTORS, size=n), rng.standard_normal((STYLES, n))
    returns = mean + np.outer(0.20 / day * shocks(days), beta)
    returns += 0.10 / day * shocks(days, SECTORS)[:, sector]
    returns += 0.06 / day * shocks(days, STYLES) @ style / np.sqrt(STYLES)
    returns += own * shocks(days, n)
    return Assets.from_returns(returns, [f"A{j:04d}" for j in range(1, n + 1)])
