"""Portfolios with limits per sector, turnover, costs and tracking error, compared with skfolio (SCIP).

At most 10 names of weekly S&P data, long only, by `SparseMeanRisk` and by skfolio's `MeanRisk` with the same arguments:
at most 2 assets of each of eight sectors; weights within 0.05 of those held; costs of 0.002 in a utility; a tracking
error of 1.5 times the least. Sectors are every eighth column: only their number matters here. SCIP gets returns scaled
to variances of about 1, since its tolerances are absolute. Values and rules are recomputed from the raw returns; CPU
seconds. Needs skfolio and pyscipopt, and the data in the folder named by KSPARSE_DATA.

Claims: on every row our answer satisfies every rule, is at most 1e-4 worse than SCIP's, relative, and takes less time;
for sectors and turnovers at most a tenth of the time from 100 assets on.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from rich.console import Console
from rich.table import Table
from skfolio.optimization import MeanRisk, ObjectiveFunction

from ksparse.datasets import sp500
from ksparse.estimators import SparsePortfolio
from ksparse.skfolio import SparseMeanRisk

K, SECTORS, AVERSION, COST, TRADED = 10, 8, 10.0, 2e-3, 0.05
HELD = 1e-5  # a solver's weight below this is not held


@dataclass(frozen=True)
class Case:
    """A portfolio problem: its objective and its constraint violation, both from raw returns."""

    name: str
    ours: dict[str, Any]
    theirs: Callable[[float], dict[str, Any]]  # in returns that are so many times as large
    value: Callable[[Any], float]
    broken: Callable[[Any], float]
    y: Any = None


def cases(X: Any) -> list[Case]:
    """Return the four problems on some columns."""
    n, V, mu, y = X.shape[1], np.cov(X.T), X.mean(axis=0), X.mean(axis=1)
    labels = np.array([f"s{i % SECTORS}" for i in range(n)])
    held = np.zeros(n)
    held[np.argsort(np.diag(V))[:K]] = 1.0 / K

    def variance(x: Any) -> float:
        return float(x @ V @ x)

    def utility(x: Any) -> float:
        return AVERSION * variance(x) - float(mu @ x) + COST * float(np.abs(x - held).sum())

    def error(x: Any) -> float:
        return float(np.linalg.norm(X @ x - y) / np.sqrt(len(X) - 1))

    def crowded(x: Any) -> float:
        return max(np.count_nonzero(x[labels == name]) for name in labels) - 2.0

    limit = 1.5 * error(SparsePortfolio(K).fit(X, y).weights_)
    sectors = {"groups": labels[None], "group_cardinalities": dict.fromkeys(labels.tolist(), 2)}
    trades = {"previous_weights": held}
    gain = {"objective_function": ObjectiveFunction.MAXIMIZE_UTILITY}
    return [
        Case("2 names a sector", sectors, lambda _: sectors, variance, crowded),
        Case("turnover of 0.05 each", trades | {"max_turnover": TRADED}, lambda _: trades | {"max_turnover": TRADED},
             variance,
             lambda x: float(np.abs(x - held).max()) - TRADED),
        Case("costs in a utility", trades | {"transaction_costs": COST, "risk_aversion": AVERSION},
             lambda s: trades | gain | {"transaction_costs": s * COST, "risk_aversion": AVERSION / s}, utility,
             lambda _: 0.0),
        Case("tracking error", {"max_tracking_error": limit}, lambda s: {"max_tracking_error": s * limit}, variance,
             lambda x: error(x) - limit, y),
    ]  # fmt: skip


def timed(fit: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return the weights, with rounding removed, and CPU seconds; None without a solution."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            x = np.asarray(fit(*arguments).weights_, dtype=float)
        except Exception as error:  # whatever a solver ends with is a row
            return str(error).splitlines()[0][:40], time.process_time() - began
    return np.where(np.abs(x) < HELD, 0.0, x), time.process_time() - began


def row(case: Case, library: str, x: Any, seconds: float, least: float) -> tuple[str, ...]:
    """Return a table row for an answer."""
    if isinstance(x, str):
        return case.name, library, x, "", "", f"{seconds:.2f}"
    worst = max(case.broken(x), abs(float(x.sum()) - 1.0), -float(x.min()), float(np.count_nonzero(x) - K), 0.0)
    value = case.value(x)
    return (
        case.name,
        library,
        f"{value:.6e}",
        f"{100 * (value - least) / abs(least):.3f} %",
        f"{worst:.0e}",
        f"{seconds:.2f}",
    )


def main() -> None:
    """Solve every problem with both libraries."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=[30, 100, 476], help="columns (default 30 100 476)")
    options.add_argument("--limit", type=float, default=60.0, help="CPU seconds for SCIP (default 60)")
    given, console = options.parse_args(), Console(width=120)
    X = sp500().returns
    assert X is not None
    for n in given.sizes:
        part = X[:, :n]
        scale = 1.0 / float(np.sqrt(np.median(np.var(part, axis=0))))
        table = Table(title=f"{n} assets, at most {K} names; SCIP has {given.limit:g} CPU s")
        for column in ("problem", "library", "value", "above the best", "violation", "CPU s"):
            table.add_column(column, justify="left" if column in ("problem", "library") else "right")
        for case in cases(part):
            ours = timed(SparseMeanRisk(K, **case.ours).fit, part, case.y)
            model = MeanRisk(
                cardinality=K,
                solver="SCIP",
                solver_params={"scip_params": {"limits/time": given.limit, "timing/clocktype": 1}},
                **case.theirs(scale),
            )
            theirs = timed(model.fit, scale * part, None if case.y is None else scale * case.y)
            least = min((case.value(x) for x, _ in (ours, theirs) if not isinstance(x, str)), default=np.nan)
            table.add_row(*row(case, "ksparse", *ours, least))
            table.add_row(*row(case, "skfolio with SCIP", *theirs, least), end_section=True)
        console.print(table)


if __name__ == "__main__":
    main()
