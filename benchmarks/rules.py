"""Rules about supports: proofs with and without bounds for the rules, whole groups compared with abess and skscope.

Sectors: OR-Library's markets with at most k assets and limits for each of ten sectors (clusters of correlated assets),
proved to 0.01 %: nodes and CPU seconds, with bounds that use the limits and with bounds that use only k. Factors:
regressions with groups, proved in the same two ways. Groups: planted and dense truths, group sizes 2 to 5, correlated
columns; the objective of a contender is that of the least-squares fit on its groups, from the raw data, relative to the
best; CPU seconds, one thread, without compilation. Needs the data in the folder named by KSPARSE_DATA; libraries that
are not installed are left out, with a message.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

import ksparse as ks
from ksparse.certify.program import Supports
from ksparse.datasets import MissingDataError, orlib_portfolio

SECTORS, SEARCHED = 10, ks.SearchSettings(enumerated=0)
# k, most of each sector, least of the first half of them
CASES = (
    (5, 1, 0),
    (10, 1, 0),
    (10, 2, 0),
    (10, 3, 0),
    (10, 2, 1),
)
SEED = 7_000  # no other benchmark or test begins here


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a run and its CPU seconds."""
    began = time.process_time()
    return run(), time.process_time() - began


@contextmanager
def knowing_only_k() -> Iterator[None]:
    """Compute bounds from k alone, without the limits of the rules; branching still obeys the rules."""
    known = Supports.limits
    Supports.limits = property(lambda self: None)  # type: ignore[assignment]
    try:
        yield
    finally:
        Supports.limits = known  # type: ignore[method-assign]


def sectors_of(V: np.ndarray) -> np.ndarray:
    """Cluster assets by their correlations (Ward)."""
    size = np.sqrt(np.diag(V))
    apart = np.sqrt(np.maximum(0.5 - 0.5 * V / np.outer(size, size), 0.0))
    np.fill_diagonal(apart, 0.0)
    return np.asarray(fcluster(linkage(squareform(apart, checks=False), "ward"), SECTORS, "maxclust"))


def proved_both_ways(solve: Callable[[], Any]) -> list[str]:
    """Compare nodes, seconds and gap of proofs with and without bounds for the rules."""
    cells = []
    for how in (None, knowing_only_k):
        if how is None:
            result, seconds = timed(solve)
        else:
            with how():
                result, seconds = timed(solve)
        left = "" if result.status is ks.Status.OPTIMAL else f" ({100 * result.gap:.2g} % left)"
        cells += [f"{result.nodes:,}", f"{seconds:.2f}{left}"]
    return cells


def warm_up() -> None:
    """Compile all loops: steps with and without limits, for few and for many nodes."""
    rng = np.random.default_rng(0)
    A, b, labels = rng.standard_normal((100, 60)), rng.standard_normal(100), np.arange(60) // 3
    for rules in ({"groups": labels}, {"group_limits": (labels, dict.fromkeys(range(20), (0, 1)))}, {}):
        ks.minimize(ks.LeastSquares(A, b), 5, gap=1e-6, max_nodes=200, **rules)


def sector_table(console: Console, limit: int) -> None:
    """Prove portfolios of least variance with limits on assets per sector."""
    table = Table(title=f"Least variance, long only, {SECTORS} sectors, proved to 0.01 % in at most {limit:,} nodes")
    for column in ("market", "k", "of each", "nodes", "s", "nodes, only k", "s, only k"):
        table.add_column(column, justify="right")
    for market in (1, 2, 3, 4, 5):
        try:
            V = np.asarray(orlib_portfolio(market).V)
        except MissingDataError as error:
            console.print(f"left out: {error}")
            return
        sectors = sectors_of(V)
        for k, most, least in CASES:
            limits = {int(label): (least if label <= SECTORS // 2 else 0, most) for label in np.unique(sectors)}

            def solve(V: Any = V, k: int = k, limits: Any = limits, sectors: Any = sectors) -> Any:
                return ks.minimize(
                    ks.Quadratic(2 * V), k, ks.Simplex(), group_limits=(sectors, limits), gap=1e-4, max_nodes=limit
                )

            table.add_row(f"port{market}", str(k), f"{least} to {most}", *proved_both_ways(solve))
    console.print(table)


def grouped(seed: int, groups: int, rows: int, k: int, planted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a regression whose groups of 2 to 5 correlated columns matter: k of them, or all with falling weight."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(groups), rng.integers(2, 6, groups))
    common = rng.standard_normal((rows, groups))
    A = 0.7 * common[:, labels] + rng.standard_normal((rows, labels.size)) + 0.5 * rng.standard_normal((rows, 1))
    worth = (rng.permutation(groups) < k) * 1.0 if planted else 0.8 ** rng.permutation(groups)
    x = worth[labels] * rng.standard_normal(labels.size)
    b = A @ x
    return A, b + rng.standard_normal(rows) * np.std(b) / (2.0 if planted else 4.0), labels


def factor_table(console: Console, limit: int) -> None:
    """Prove regressions with whole groups."""
    table = Table(title=f"Least squares with groups of 2 to 5, proved to 0.1 % in at most {limit:,} nodes")
    for column in ("groups", "rows", "k", "truth", "nodes", "s", "nodes, only k", "s, only k"):
        table.add_column(column, justify="right")
    for groups, rows, k, planted in ((20, 200, 5, False), (30, 300, 5, False), (30, 300, 8, True), (40, 400, 5, False)):
        A, b, labels = grouped(SEED, groups, rows, k, planted)

        def solve(A: Any = A, b: Any = b, k: int = k, labels: Any = labels) -> Any:
            return ks.minimize(ks.LeastSquares(A, b), k, groups=labels, gap=1e-3, max_nodes=limit, settings=SEARCHED)

        table.add_row(str(groups), str(rows), str(k), "planted" if planted else "dense", *proved_both_ways(solve))
    console.print(table)


def ours(A: np.ndarray, b: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    return np.asarray(ks.minimize(ks.LeastSquares(A, b), k, groups=labels).x)


def abess(A: np.ndarray, b: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    from abess import LinearRegression

    scale = 1e3 * np.sqrt(len(b)) / np.linalg.norm(b)  # as in suite/contenders/abess_.py: no gain too small for it
    model = LinearRegression(support_size=k, fit_intercept=False, group=labels)
    return np.asarray(model.fit(A, scale * b, is_normal=False).coef_)


def skscope(A: np.ndarray, b: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    import jax
    import jax.numpy as jnp
    from skscope import ScopeSolver

    jax.config.update("jax_enable_x64", True)
    solver = ScopeSolver(labels.size, k, group=labels)
    return np.asarray(solver.solve(lambda x: jnp.sum((b - A @ x) ** 2), jit=True))


CONTENDERS = {"ksparse": ours, "abess": abess, "skscope": skscope}


def fitted(A: np.ndarray, b: np.ndarray, labels: np.ndarray, x: np.ndarray, k: int) -> float:
    """Return ½‖Ax − b‖² of the best fit on the groups of x; ∞ for more than k groups."""
    used = np.unique(labels[x != 0])
    if used.size > k:
        return np.inf
    S = np.isin(labels, used)
    return 0.5 * float(np.sum((A[:, S] @ np.linalg.lstsq(A[:, S], b, rcond=None)[0] - b) ** 2))


def group_table(console: Console, repeats: int) -> None:
    """Compare selections of whole groups with other libraries."""
    table = Table(
        title=f"Least squares with whole groups, {repeats} instances each: mean excess over the best, how often best, "
        "CPU s"
    )
    for column in ("groups", "rows", "k", "truth", *CONTENDERS):
        table.add_column(column, justify="right")
    missing = set()
    for groups, rows, k, planted in (
        (100, 300, 10, True),
        (100, 300, 10, False),
        (300, 500, 10, True),
        (300, 500, 15, False),
    ):
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTENDERS}
        for seed in range(repeats):
            A, b, labels = grouped(SEED + seed, groups, rows, k, planted)
            for name, solve in CONTENDERS.items():
                try:
                    if not seed:
                        solve(A, b, labels, k)  # compiled
                    x, seconds = timed(lambda: solve(A, b, labels, k))  # noqa: B023 (called at once)
                except ImportError:
                    missing.add(name)
                    continue
                found[name].append((fitted(A, b, labels, x, k), seconds))
        best = np.min([[value for value, _ in runs] for runs in found.values() if runs], axis=0)
        cells = []
        for runs in found.values():
            excess = np.array([value for value, _ in runs]) / best - 1 if runs else np.array([np.nan])
            times = np.mean([seconds for _, seconds in runs]) if runs else np.nan
            cells.append(
                f"{100 * excess.mean():.2g} %, {int((excess < 1e-9).sum())}, {times:.3f}" if runs else "not installed"
            )
        table.add_row(str(groups), str(rows), str(k), "planted" if planted else "dense", *cells)
    console.print(table)
    for name in sorted(missing):
        console.print(f"left out: {name} is not installed")


TABLES = {"sectors": sector_table, "factors": factor_table}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*TABLES, "groups"], help="one of the tables")
    parser.add_argument("--limit", type=int, default=5_000, help="nodes for a proof")
    parser.add_argument("--repeats", type=int, default=10, help="instances of each kind")
    given, page = parser.parse_args(), Console(width=140)
    warm_up()
    for name, show in TABLES.items():
        if given.only in (None, name):
            show(page, given.limit)
    if given.only in (None, "groups"):
        group_table(page, given.repeats)
