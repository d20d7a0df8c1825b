"""Portfolios with required returns, sector limits and minimum weights. The quick ones need no data file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from suite.problem import Problem

SHARE = 0.3  # of the way from the return of the least risk to the highest
BUY_IN = 0.01


def row_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return problems with an exact return, with and without a ridge, and larger markets with minimum weights."""
    if quick:
        return {"generated 40": partial(_market, "generated", 5, n=40)}
    libraries = {
        f"port{i}, {kind}, k = {k}": partial(_orlib, i, kind == "ridge + return", k)
        for i in range(1, 6)
        for kind in ("return", "ridge + return")
        for k in (5, 10, 20)
    }
    markets = {
        f"{name}, floor, k = {k}": partial(_market, name, k)
        for name in ("sp500", "tokyo", "generated")
        for k in (5, 10)
    }
    return libraries | markets


def cap_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return problems with sector caps and bounds on weights, and those of Frangioni and Gentile."""
    sectors = {f"sectors {n}": partial(_sectors, n) for n in ((40,) if quick else (200, 476))}
    files = () if quick else ("200_a", "200_b", "200_c", "300_a", "300_b", "400_a")
    limits = {"none": None, "6": 6, "8": 8, "10": 10, "12": 12}
    return sectors | {
        f"pard{file}, k = {k}": partial(_pard, file, limit) for file in files for k, limit in limits.items()
    }


def proof_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return problems to prove: OR-Library under a budget, with a return and with a ridge; minimum weights."""
    if quick:
        return {"generated 40": partial(_market, "generated", 5, n=40)}
    budgets = {f"port{i}, budget, k = {k}": partial(_budget, i, k) for i in range(1, 6) for k in (5, 10, 20)}
    rows = {name: build for name, build in row_builders(False).items() if name.startswith("port")}
    return budgets | rows | {name: build for name, build in cap_builders(False).items() if name.startswith("pard")}


def gap_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return problems for the gap after a minute: larger markets, sectors with minimum weights."""
    if quick:
        return {"generated 40": partial(_market, "generated", 5, n=40)}
    markets = {
        f"{name}, budget, k = {k}": partial(_long_only, name, k) for name in ("sp500", "tokyo") for k in (5, 10, 20)
    }
    return markets | {f"port{i}, sectors, k = {k}": partial(_orlib_sectors, i, k) for i in range(2, 6) for k in (5, 10)}


def _budget(i: int, k: int) -> Problem:
    from ksparse.datasets import orlib_portfolio

    return _invested(orlib_portfolio(i).V, k)


def _invested(V: Any, k: int) -> Problem:
    return Problem("rows", k, V=V / np.median(np.diag(V)), E=np.ones((1, len(V))), f=np.ones(1), upper=1.0)


def _long_only(name: str, k: int) -> Problem:
    """Return the sample covariance for more days than assets, else the estimate of Ledoit and Wolf."""
    from ksparse import datasets

    returns = getattr(datasets, name)().returns
    if len(returns) > 2 * returns.shape[1] or name == "tokyo":
        return _invested(np.cov(returns.T), k)
    from sklearn.covariance import ledoit_wolf

    return _invested(ledoit_wolf(returns)[0], k)


def _orlib_sectors(i: int, k: int) -> Problem:
    """Weights of 0.01 to 0.4, and of 0 to 0.5, 0.45 and 0.4 in three sectors."""
    from ksparse.datasets import orlib_portfolio

    V = orlib_portfolio(i).V
    n = len(V)
    G = np.array([np.arange(n) % 3 == sector for sector in range(3)], dtype=float)
    return Problem(
        "rows",
        k,
        V=V / np.median(np.diag(V)),
        E=np.ones((1, n)),
        f=np.ones(1),
        G=G,
        h=np.array([0.5, 0.45, 0.4]),
        floor=0.01,
        upper=0.4,
    )


def _returning(
    V: Any, mu: Any, k: int, high: float | None = None, floor: float = 0.0, low: float | None = None
) -> Problem:
    """min xᵀVx, Σx = 1, μᵀx = a return between that of the least risk (or `low`) and the highest."""
    import ksparse as ks

    n, top = len(mu), float(np.abs(mu).max())
    if low is None:  # without a ridge fewer than 50 names have it, so that the limit is none
        low = float(mu @ ks.minimize(ks.Quadratic(2.0 * V), min(n, 50), ks.Simplex()).x)
    target = low + SHARE * ((float(mu.max()) if high is None else high) - low)
    return Problem(
        "rows", k, V=V, E=np.vstack([np.ones(n), mu / top]), f=np.array([1.0, target / top]), floor=floor, upper=1.0
    )


def _orlib(i: int, ridge: bool, k: int) -> Problem:
    """As Bertsimas and Cory-Wright's Table 4 where there is a ridge: ½xᵀVx + ‖x‖²/2γ, γ = 100/√n."""
    import ksparse as ks
    from ksparse.datasets import orlib_portfolio

    assets = orlib_portfolio(i)
    n, high = len(assets.r), None
    V = assets.V / 2
    if ridge:
        gamma = 100 / np.sqrt(n)
        V = V + np.eye(n) / (2 * gamma)
        high = float(assets.r @ ks.minimize(ks.Quadratic(np.eye(n) / gamma, -assets.r), n, ks.Simplex()).x)
    return _returning(V / np.median(np.diag(V)), assets.r, k, high)


def _market(name: str, k: int, n: int = 2000) -> Problem:
    from ksparse import datasets

    if name == "generated":
        rng = np.random.default_rng(0)
        returns = 0.01 * (
            0.3 * rng.standard_normal((500, 20)) @ rng.standard_normal((20, n)) + rng.standard_normal((500, n))
        )
        returns += 4e-4 * rng.standard_normal(n)
    else:
        returns = getattr(datasets, name)().returns
    V, mu = np.cov(returns.T), returns.mean(axis=0)
    low = float(mu.mean()) if name == "generated" else None  # more names have its least risk than a search is sure of
    return _returning(V / np.median(np.diag(V)), mu, k, floor=BUY_IN, low=low)


def _sectors(n: int) -> Problem:
    """At most 20 of n names of 0.01 to 0.08 each, at most a fifth in each of eleven sectors."""
    rng = np.random.default_rng(0)
    returns = 0.01 * (rng.standard_normal((300, n)) + rng.standard_normal((300, 1)))
    G = np.array([np.arange(n) % 11 == sector for sector in range(11)], dtype=float)
    V = np.cov(returns.T)
    return Problem(
        "rows",
        min(20, n // 2),
        V=V / np.median(np.diag(V)),
        E=np.ones((1, n)),
        f=np.ones(1),
        G=G,
        h=np.full(11, 0.2),
        floor=0.01,
        upper=0.08,
    )


def _pard(file: str, k: int | None) -> Problem:
    from ksparse.datasets import buy_ins

    data = buy_ins(file)
    n = len(data.mu)
    return Problem(
        "rows", k or n, V=data.Q, E=np.ones((1, n)), f=np.ones(1), G=-data.mu[None], h=np.array([-data.rho]),
        floor=data.lower, upper=data.upper,
    )  # fmt: skip
