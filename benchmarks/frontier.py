"""Frontiers and rebalancings of portfolios: gains and losses by warm starts, compared with skfolio where possible.

50 points of the OR-Library's port5 (225 assets), K = 10, in one call and one by one; rebalancings every four weeks on
the S&P data (476 assets, windows of 104 weeks), with and without costs and a turnover; skfolio's frontier and its
rebalancings without a limit on assets, which would need a MIP solver. CPU seconds. Needs the data in the folder named
by KSPARSE_DATA.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks
from ksparse.datasets import MissingDataError, orlib_portfolio, sp500
from ksparse.portfolio.frontier import frontier
from ksparse.portfolio.problem import portfolio
from ksparse.portfolio.solve import solve_portfolio

POINTS, K, FLOOR = 50, 10, 0.01
WINDOW, STEP = 104, 4


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a run and its CPU seconds."""
    began = time.process_time()
    return run(), time.process_time() - began


def frontiers(console: Console) -> None:
    """Compare a frontier in one call with its points solved one by one."""
    try:
        assets = orlib_portfolio(5)
    except MissingDataError as error:
        console.print(f"left out: {error}")
        return
    V, r = np.asarray(assets.V), np.asarray(assets.r)
    table = Table(title=f"{POINTS} points, {len(r)} assets, K = {K}, long only")
    for column in ("least position", "s, one call", "s, one by one", "ratio", "largest excess", "points above"):
        table.add_column(column, justify="right")
    for floor in (0.0, FLOOR):
        solve = partial(solve_portfolio, min_weight=floor)
        problem = portfolio(V, r, objective="minimize_risk", long_only=True)
        points, one = timed(partial(frontier, assets, problem, K, POINTS, solve))
        alone, many = timed(lambda solve=solve, points=points: [
            solve(portfolio(V, r, target_return=float(t), long_only=True), K).fun for t in points.targets
        ])  # fmt: skip
        excess = points.variances / np.array(alone) - 1
        above = str(int((excess > 1e-9).sum()))
        table.add_row(f"{floor:g}", f"{one:.2f}", f"{many:.2f}", f"{many / one:.1f}", f"{excess.max():.1e}", above)
    console.print(table)


def walks(console: Console) -> None:
    """Rebalance portfolios in sequence."""
    try:
        returns = sp500().returns
    except MissingDataError as error:
        console.print(f"left out: {error}")
        return
    assert returns is not None
    table = Table(title=f"Rebalancings of {returns.shape[1]} assets, K = {K}, windows of {WINDOW}, every {STEP}")
    for column in ("library", "rules", "s a rebalancing", "assets at most", "turnover at most"):
        table.add_column(column, justify="left" if column in ("library", "rules") else "right")
    cases: dict[str, dict[str, Any]] = {
        "least variance": {"objective": "minimize_risk"},
        "utility": {},
        "utility, costs": {"turnover_cost": 2e-3},
        "utility, costs, turnover of 0.3 in all": {"turnover_cost": 2e-3, "max_turnover": 0.3},
        "utility, short side of 0.3": {"long_only": False, "max_short": 0.3},
        "least variance, turnover of 0.3 in all": {"objective": "minimize_risk", "max_turnover": 0.3},
    }
    for rules, options in cases.items():
        model = ks.SparsePortfolio(K, max_weight=0.2, min_weight=0.02, **options)
        walk, seconds = timed(partial(model.walk_forward, returns, window=WINDOW, step=STEP))
        names = int(np.count_nonzero(walk.weights, axis=1).max())
        table.add_row("ksparse", rules, f"{seconds / len(walk):.3f}", str(names), f"{walk.turnovers[1:].max():.2f}")
    for row in skfolio_walk(returns, console):
        table.add_row(*row)
    console.print(table)


def skfolio_walk(returns: Any, console: Console) -> list[tuple[str, ...]]:
    """Time skfolio on the last window, without a limit on assets."""
    try:
        from skfolio.optimization import MeanRisk, ObjectiveFunction
    except ImportError:
        console.print("left out: skfolio is not installed")
        return []
    rows = []
    held, last = np.full(returns.shape[1], 1 / returns.shape[1]), returns[-WINDOW:]
    utility = {"objective_function": ObjectiveFunction.MAXIMIZE_UTILITY, "risk_aversion": 10.0}
    cases: dict[str, dict[str, Any]] = {
        "least variance": {},
        "utility, costs": utility | {"transaction_costs": 2e-3},
        "utility, costs, turnover of 0.02 each": utility | {"transaction_costs": 2e-3, "max_turnover": 0.02},
    }
    for rules, options in cases.items():
        model, seconds = timed(partial(MeanRisk(max_weights=0.2, previous_weights=held, **options).fit, last))
        names = int((np.abs(model.weights_) > 1e-4).sum())
        rows.append(
            (
                "skfolio, no cap on names",
                rules,
                f"{seconds:.3f}",
                str(names),
                f"{np.abs(model.weights_ - held).sum():.2f}",
            )
        )
    return rows


if __name__ == "__main__":
    page = Console(width=140)
    frontiers(page)
    walks(page)
