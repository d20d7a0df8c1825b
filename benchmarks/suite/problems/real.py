"""Problems on real data: gene expression, asset returns. The quick ones need no file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from suite.problem import Problem

ASSETS = 10  # a portfolio may hold
DAYS = 1000  # of drawn returns, where only mean and covariance are known


def component_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    digits = {"digits": _digits}
    return digits if quick else {"colon": partial(_genes, "colon"), "leukemia": partial(_genes, "leukemia")}


def component_gap_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return components for the gap after a minute."""
    if quick:
        return {}
    return {
        f"{name}, component, k = {k}": partial(_correlated, name, k)
        for name in ("communities", "riboflavin")
        for k in (5, 10)
    }


def _correlated(name: str, k: int) -> Problem:
    """Return a component problem; of riboflavin only the first 257 columns."""
    from ksparse import datasets

    return Problem("component", k, A=np.asarray(getattr(datasets, name)()[0], dtype=float)[:, :257])


def _digits() -> Problem:
    from ksparse.datasets import digits

    return Problem("component", 10, A=digits()[0])


def _genes(name: str) -> Problem:
    from ksparse import datasets

    return Problem("component", 100, A=getattr(datasets, name)()[0])


def portfolio_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    if quick:
        return {"generated 40": _generated, "skfolio 20": _skfolio}
    libraries = {f"port{i}": partial(_orlib, i) for i in range(1, 6)}
    return {
        "skfolio 20": _skfolio,
        **libraries,
        "S&P 476": partial(_returns, "sp500"),
        "Tokyo 1338": partial(_returns, "tokyo"),
    }


def _generated() -> Problem:
    from ksparse.datasets import factor_model

    return _from_returns(factor_model(40, 300).returns, k=5)


def _skfolio() -> Problem:
    """Return 20 stocks of the S&P, the data that come with skfolio."""
    from skfolio.datasets import load_sp500_dataset
    from skfolio.preprocessing import prices_to_returns

    return _from_returns(prices_to_returns(load_sp500_dataset()).to_numpy())


def _returns(name: str) -> Problem:
    from ksparse import datasets

    assets = getattr(datasets, name)()
    return Problem("portfolio", ASSETS, V=assets.V, returns=assets.returns)


def _from_returns(returns: Any, k: int = ASSETS) -> Problem:
    return Problem("portfolio", k, V=np.cov(returns.T), returns=returns)


def _orlib(i: int) -> Problem:
    from ksparse.datasets import orlib_portfolio

    assets = orlib_portfolio(i)
    return Problem("portfolio", ASSETS, V=assets.V, returns=drawn_returns(assets.V, assets.r))


def drawn_returns(V: Any, r: Any, seed: int = 0) -> Any:
    """Return returns with sample covariance V and mean r, for libraries that take returns only."""
    draws = np.random.default_rng(seed).standard_normal((DAYS, len(r)))
    draws -= draws.mean(axis=0)
    draws = draws @ np.linalg.inv(np.linalg.cholesky(np.cov(draws.T))).T  # exactly the identity as sample covariance
    values, vectors = np.linalg.eigh(V)
    return draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T + r
