"""Returns of many assets, drawn from a factor model, so that the paper's portfolio problem runs without any file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.util.checks import check_integer

DAYS_A_YEAR = 250
SECTORS = 33  # as many as the Tokyo Stock Exchange has
STYLES = 5


@dataclass(frozen=True)
class Assets:
    """Mean and covariance of the returns of named assets per period, and the returns themselves where known.

    Parameters
    ----------
    V : ndarray
        Covariances.
    r : ndarray
        Means.
    names : list of str
        Of the assets.
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
        """Sample covariance and mean."""
        V, r = np.atleast_2d(np.cov(returns, rowvar=False)), returns.mean(axis=0)
        flat = np.sqrt(np.diag(V)) <= 10 * np.finfo(float).eps * np.abs(r)  # what is left of a constant is rounding
        V[flat], V[:, flat] = 0.0, 0.0
        return cls(V, r, names, returns)


def factor_model(n_assets: int = 1338, n_days: int = 2148, seed: int = 0) -> Assets:
    """Daily returns by market, sectors and styles, with fat tails; the default is the shape of the paper's Table 4.

    Yearly figures: market volatility 20 %, sectors 10 %, styles 6 %; an asset's beta is around 1, its own volatility around 24 %
    (lognormal); its mean is 6 % per unit of beta, and an own part of 3 % deviation. Innovations are Student's t with 5 degrees of freedom.

    Parameters
    ----------
    n_assets : int, default=1338
        Assets.
    n_days : int, default=2148
        Days.
    seed : int, default=0
        Of the random numbers.

    Returns
    -------
    Assets
        Returns, their mean and covariance, and names.

    Raises
    ------
    ValueError, TypeError
        If a number is not whole, or too small.

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
