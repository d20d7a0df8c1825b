"""`ksparse portfolio`: at most k assets from a table of prices or returns."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli import input_tables
from ksparse.cli.input_tables import amount, number, weight
from ksparse.cli.output import (
    LIMIT,
    InputError,
    Output,
    Part,
    by_name,
    exit_code,
    facts,
    objectives_by_k,
    report,
    warnings_of,
    worst,
)
from ksparse.datasets import Assets
from ksparse.portfolio.frontier import frontier
from ksparse.portfolio.problem import RISK_AVERSION, guess_table_kind, looks_like_prices, portfolio_of
from ksparse.portfolio.solve import solve_portfolio
from ksparse.result import Status
from ksparse.util.arrays import Vector
from ksparse.util.checks import SMALLEST, check_size

HELP = "a portfolio of at most k assets from prices or returns"
EXAMPLES = (
    "ksparse portfolio prices.csv -k 10 --long-only --max-weight 20% --min-weight 1% --out weights.csv",
    "ksparse portfolio returns.csv --returns -k 20 --target-return 0.0005 --report page.html",
    "ksparse portfolio - -k 10 --long-only --out - < prices.csv",
    "ksparse portfolio prices.csv -k 12 --long-only --sectors sectors.csv --sector-cap 0.25 "
    "--rule 'AAPL + MSFT <= 0.1' --holdings weights.csv --cost 0.0002 --max-turnover 0.3",
    "ksparse portfolio prices.csv -k 12 --long-only --min-weight 0.02 --sectors sectors.csv --sector-names 3 "
    "--sector-names energy=1:2",
    "ksparse portfolio prices.csv -k 20 --long-only --index SPX",
    "ksparse portfolio prices.csv -k 10 --long-only --max-weight 0.2 --frontier 50 --out frontier.csv",
    "ksparse portfolio prices.csv -k 10 --long-only --max-weight 0.2 --walk 500:20 --cost 0.002 --max-turnover 0.5 "
    "--out walk.csv",
    "ksparse portfolio prices.csv -k 20 --long-only --index SPX --max-tracking-error 0.004 --min-variance",
)
UNCHANGED = (  # options that are parameters of `SparsePortfolio`
    "risk_aversion", "target_return", "long_only", "max_tracking_error", "max_weight", "max_short", "max_turnover",
)  # fmt: skip
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in (*UNCHANGED, "min_weight")} | {
    # words in errors of the library, and the option they stand for
    "objective='minimize_risk'": "--min-variance", "objective cannot": "--min-variance cannot",
    "requires groups": "needs --sectors", "groups has": "--sectors has",
    "needs y, the returns of the index": "needs --index, the column of the index",
    "when y (an index) is given": "with --index", "long_only=True": "--long-only",
    "group_cardinalities": "--sector-names", "group_caps": "--sector-cap", "group_floors": "--sector-floor",
    "linear_constraints": "--rule", "forced_in": "--include", "forced_out": "--exclude", "min_weights": "--bounds",
    "max_weights": "--bounds", "previous_weights": "--holdings", "turnover_cost": "--cost",
}  # fmt: skip
BLANK = ("", "na", "nan")  # texts that stand for no number in tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add, files = parser.add_argument, partial(parser.add_argument, type=Path, metavar="FILE")
    help_ = "prices or returns, recognised by their numbers; a column per asset, a row per period: CSV, Parquet or NPZ"
    add("file", type=Path, metavar="TABLE", help=help_)
    add("-k", type=int, required=True, help="maximum number of assets")
    help_ = f"minimise A times the variance minus the mean return (default: {RISK_AVERSION:g})"
    add("--risk-aversion", type=float, metavar="A", help=help_)
    add("--min-variance", action="store_true", help="minimise the variance alone")
    add("--index", metavar="COLUMN", help="minimise the mean squared difference to the returns of this column")
    help_ = "instead limit the root mean squared difference to --index to E"
    add("--max-tracking-error", type=amount, metavar="E", help=help_)
    help_ = "minimum mean return per period; without --risk-aversion the variance is minimised"
    add("--target-return", type=amount, metavar="R", help=help_)
    add("--frontier", type=int, metavar="N", help="N portfolios, from the minimum variance to the maximum mean return")
    help_ = "walk-forward backtest: fit on WINDOW rows, hold for STEP rows, rebalance"
    add("--walk", metavar="WINDOW:STEP", help=help_)
    add("--long-only", action="store_true", help="no negative weights")
    add("--max-weight", type=weight, metavar="W", help="maximum absolute weight: 0.2 or 20%%")
    add("--min-weight", type=weight, default=0.0, metavar="W", help="minimum absolute weight of the assets held")
    add("--budget", default="1", metavar="B", help="sum of the weights, or LEAST:MOST (default: 1)")
    add("--max-short", type=weight, metavar="S", help="maximum sum of the absolute short positions")
    files("--sectors", help="a table of two columns: asset, sector")
    add("--sector-cap", type=weight, metavar="W", help="maximum weight of each sector")
    add("--sector-floor", type=weight, metavar="W", help="minimum weight of each sector")
    help_ = "maximum assets per sector: N, SECTOR=N, or SECTOR=LEAST:MOST with either left out; may be repeated"
    add("--sector-names", action="append", default=[], metavar="N", help=help_)
    files("--bounds", help="a table of three columns: asset, minimum weight, maximum weight; cells may be blank")
    help_ = "linear constraint on assets and sectors: 'tech <= 0.3'; may be repeated"
    add("--rule", action="append", default=[], metavar="TEXT", help=help_)
    add("--include", default="", metavar="NAME,NAME", help="assets that are always held, with at least --min-weight")
    add("--exclude", default="", metavar="NAME,NAME", help="assets that are never held")
    files("--holdings", help="current weights, a table of two columns: asset, weight")
    help_ = "proportional trading cost per period (with --walk: per trade), or a table: asset, cost"
    add("--cost", default="0", metavar="C", help=help_)
    add("--max-turnover", type=amount, metavar="T", help="maximum sum of the absolute trades from the holdings")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--prices", action="store_true", help="the table holds prices, whatever it looks like")
    kind.add_argument("--returns", action="store_true", help="the table holds returns, whatever it looks like")
    add("--dates", metavar="COLUMN", help="the column of dates, if it is not the first")
    add("--drop", default="", metavar="COL,COL", help="columns to leave out")
    add("--out", type=Path, metavar="FILE.csv", help="write the weights to this file")


def run(options: argparse.Namespace, output: Output) -> int:
    """Read, solve, print and write; return the exit code."""
    output.check_destinations(options.out, options.report)
    if options.frontier is not None:
        _refuse(options, "--frontier", "--walk", "--risk-aversion", "--target-return", "--report", "--cost")
        if options.index is not None and options.max_tracking_error is None:
            raise InputError("--index cannot be combined with --frontier without --max-tracking-error")
        if options.frontier < 2:
            raise InputError(f"--frontier must be at least 2 points, got {options.frontier}")
    if options.walk is not None:
        _refuse(options, "--walk", "--report")
        _window(options.walk)
    table, kind = _assets(options, output)
    assets, index = _without_index(table, options)
    k = input_tables.at_most(options.k, len(assets.names), "asset", output.note)
    rules, search = _rules(options, assets.names), {
        "min_weight": options.min_weight, "effort": options.effort, "gap": options.gap, "max_time": options.limit,
        "random_state": options.seed,
    }  # fmt: skip
    try:
        if options.walk is not None:
            return _show_walk(assets, index, k, rules | search, options, output)
        if options.frontier is not None:
            return _show_frontier(assets, index, k, rules, search, options, output)
        return _show_portfolio(assets, index, k, rules, search, kind, options, output)
    except ValueError as error:
        names = "|".join(re.escape(name) for name in sorted(OPTIONS, key=len, reverse=True))
        error.args = (re.sub(rf"(?<![\w'\"-])(?:{names})(?!\w)", lambda match: OPTIONS[match.group()], str(error)),)
        raise


def _refuse(options: argparse.Namespace, option: str, *others: str) -> None:
    """Refuse options that cannot be combined with one."""
    for other in others:
        if getattr(options, other[2:].replace("-", "_")) not in (None, "0"):
            raise InputError(f"{other} cannot be combined with {option}")


def _window(text: str) -> dict[str, int]:
    """Return the window and the step of a walk-forward backtest."""
    window, _, step = text.partition(":")
    if not (window.isdigit() and step.isdigit() and int(window) >= 2 and int(step) >= 1):
        raise InputError(f"--walk must be WINDOW:STEP in whole numbers of rows, such as 500:20, got {text!r}")
    return {"window": int(window), "step": int(step)}


def _assets(options: argparse.Namespace, output: Output) -> tuple[Assets, str]:
    """Return the assets of the table, and how it was read: as "prices" or "returns"."""
    table = input_tables.dropped(input_tables.read_table(options.file), options.drop, options.file)
    dates, table = input_tables.split_dates(table, options.dates)
    if table.columns.empty:
        raise InputError(f"{options.file} has no column of prices or returns")
    values, names = input_tables.numbers(table, hint="; if it holds dates, name it with --dates"), list(table.columns)
    kind = "prices" if options.prices else "returns" if options.returns else guess_table_kind(values)
    if kind is None:
        doubt = f"cannot tell whether {options.file} holds prices or returns"
        why = f"no number is below 0, but the median is only {np.median(values):g}"
        raise InputError(f"{doubt}: {why}: say --prices or --returns")
    needed = 2 if kind == "returns" else 3
    if len(values) < needed:
        few = f"{options.file} has {len(values)} rows of {kind}, too few for a covariance"
        raise InputError(f"{few}: at least {needed} are needed")
    if kind == "returns":
        if options.returns and looks_like_prices(values):
            output.note("the table looks like prices; without --returns it is read as such")
        check_size(values, f"{options.file}", names, least=SMALLEST)
        return Assets.from_returns(values, names), kind
    wrong = np.argwhere(values <= 0)
    if wrong.size:
        row, column = (int(i) for i in wrong[0])
        place = f"row {row + 1}" if dates is None else f"row {row + 1} ({dates[row]})"
        held = f"column {names[column]!r} holds {values[row, column]:g} in {place}"
        raise InputError(f"prices must be > 0: {held}; for a table of returns add --returns")
    returns: Any = values[1:] / values[:-1] - 1.0
    check_size(returns, f"the returns of {options.file}", names)
    return Assets.from_returns(returns, names), kind


def _without_index(assets: Assets, options: argparse.Namespace) -> tuple[Assets, Any]:
    """Return the assets, and the returns of the index or None."""
    if options.index is None:
        return assets, None
    if options.index not in assets.names:
        raise InputError(f"--index {options.index!r} is not a column of {options.file}")
    at, X = assets.names.index(options.index), np.asarray(assets.returns)
    others = [name for name in assets.names if name != options.index]
    if not others:
        raise InputError(f"{options.file} has no asset other than the index {options.index!r}")
    return Assets.from_returns(np.delete(X, at, axis=1), others), X[:, at]


def _rules(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Return the parameters of `SparsePortfolio` that the options describe."""
    known = AssetNames(names, options.file)
    groups = None if options.sectors is None else known.sectors(options.sectors)
    lower, upper = ({}, {}) if options.bounds is None else known.bounds(options.bounds)
    return {name: getattr(options, name) for name in UNCHANGED} | {
        "objective": "minimize_risk" if options.min_variance or options.frontier is not None else None,
        "budget": _budget(options.budget), "min_weights": lower or None, "max_weights": upper or None,
        "groups": groups, "group_caps": options.sector_cap, "group_floors": options.sector_floor,
        "group_cardinalities": _sector_counts(options.sector_names, groups), "linear_constraints": options.rule or None,
        "forced_in": known.listed(options.include, "--include") or None,
        "forced_out": known.listed(options.exclude, "--exclude") or None,
        "previous_weights": None if options.holdings is None else known.numbers(options.holdings, "weight"),
        "turnover_cost": known.cost(options.cost),
    }  # fmt: skip


def _budget(text: str) -> float | tuple[float, float]:
    """Return the sum of the weights, or (minimum, maximum)."""
    try:
        sides = [number(part) for part in text.split(":")]
    except ValueError:
        sides = []
    if len(sides) not in (1, 2) or not np.isfinite(sides).all():
        raise InputError(f"--budget must be a number or LEAST:MOST, such as 0.9 or 90%:100%, got {text!r}")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _sector_counts(given: list[str], groups: list[str] | None) -> dict[str, tuple[int, int | None]] | None:
    """Return (minimum, maximum) by sector from "tech=3", "tech=1:3", "tech=1:", or "3" for all sectors not named."""
    found: dict[str, tuple[int, int | None]] = {}
    if given and groups is None:
        raise InputError("--sector-names needs --sectors, a table of two columns: asset, sector")
    for text in sorted(given, key=lambda text: "=" in text):
        sector, equals, count = text.rpartition("=")
        least, _, most = (part.strip() for part in count.rpartition(":"))
        if not (least + most) or not all(side.isdecimal() for side in (least, most) if side):
            raise InputError(f"--sector-names must be N, SECTOR=N or SECTOR=LEAST:MOST in whole numbers, got {text!r}")
        sectors = [sector.strip()] if equals else groups or []
        found |= dict.fromkeys(sectors, (int(least or 0), int(most) if most else None))
    return found or None


@dataclass(frozen=True)
class AssetNames:
    """The assets of the table, which options and other files may name."""

    names: list[str]
    file: Path

    def require(self, given: Iterable[str], where: Any) -> None:
        """Refuse names that are not assets of the table."""
        for name in given:
            if name not in self.names:
                raise InputError(f"{where} names {name!r}, which is not an asset of {self.file}")

    def listed(self, text: str, option: str) -> list[str]:
        """Return the assets that an option names, separated by commas; names with a comma stand in double quotes."""
        parts = [text] if text in self.names else input_tables.split(text)
        given = [part if part in self.names else part.strip() for part in parts if part.strip()]
        self.require(given, option)
        return given

    def sectors(self, path: Path) -> list[str]:
        """Return the sector of each asset."""
        sector_of = input_tables.pairs(path, "asset", "sector", self.names)
        for name in self.names:
            if not sector_of.get(name):
                raise InputError(f"{path} has no sector for {name!r}")
        return [sector_of[name] for name in self.names]

    def numbers(self, path: Path, what: str, column: int = 1, bounds: bool = False) -> dict[str, float]:
        """Return a column of finite numbers by asset; bounds may be blank, and must not look like percentages."""
        found = {}
        given = input_tables.pairs(path, "asset", what, self.names, column)
        self.require((name for name, value in given.items() if not bounds or value.lower() not in BLANK), path)
        for name, text in given.items():
            if bounds and text.lower() in BLANK:
                continue
            about = f"the {what} of {name!r}"
            try:
                found[name] = number(text or "nan")
            except ValueError:
                raise InputError(f"{path} holds {text!r} as {about}, which is not a number") from None
            if not np.isfinite(found[name]):
                raise InputError(f"{path} has nothing finite as {about}")
            if bounds and (doubt := input_tables.doubtful(text, found[name])):
                raise InputError(f"{path}: {about}: {doubt}")
        return found

    def bounds(self, path: Path) -> tuple[dict[str, float], dict[str, float]]:
        """Return the minimum and maximum weights of the assets that have any."""
        return self.numbers(path, "least weight", 1, bounds=True), self.numbers(path, "most weight", 2, bounds=True)

    def cost(self, text: str) -> float | dict[str, float]:
        """Return the cost per unit traded: one number, or a table by asset."""
        with suppress(ValueError):
            return number(text)
        return self.numbers(Path(text), "cost")


def _show_portfolio(
    assets: Assets, index: Any, k: int, rules: dict[str, Any], search: dict[str, Any], kind: str,
    options: argparse.Namespace, output: Output,
) -> int:  # fmt: skip
    """Solve, print and write one portfolio."""
    problem, names, X = portfolio_of(assets, index, **rules), assets.names, np.asarray(assets.returns)
    result = solve_portfolio(problem, k, **search)
    x = result.x
    weights, traded = by_name(names, x), np.abs(x - problem.held)
    mean, deviation = float(assets.r @ x), float(np.sqrt(max(0.0, x @ assets.V @ x)))
    title = f"{len(weights)} of {len(names)} assets"
    if options.out is not None:  # before anything is printed: an error on the screen does not lose the answer
        output.write_csv(options.out, ("asset", "weight"), list(weights.items()))
    if options.report is not None:

        def objective(near: int) -> float:
            alone = search | {"effort": None, "gap": None}
            return result.fun if near == k else solve_portfolio(problem, near, **alone).fun

        shown = {"mean return per period": f"{mean:.6g}", "deviation per period": f"{deviation:.6g}"}
        part = Part("The portfolio", result, weights, "weight", shown | {"weights sum to": f"{x.sum():.12g}"})
        near, warned = objectives_by_k(k, len(names), objective), warnings_of(X, names)
        output.write(options.report, report(title, options.command_line, [part], near, k, warned))
    rows = [(name, f"{100 * weights[name]:.2f} %", f"{assets.r[names.index(name)]:.3e}") for name in weights]
    output.table(title, ("asset", "weight", "mean return"), rows)
    moments = f"mean return {mean:.4e}, standard deviation {deviation:.4e}"
    output.print(f"from {kind}, per period: {moments}; weights sum to {x.sum():.12g}")
    turnover = {} if options.holdings is None else {"turnover": float(traded.sum())}
    if turnover:
        cost = float(problem.cost @ traded)
        output.print(f"turnover {turnover['turnover']:.6g} from the holdings, at a cost of {cost:.4e}")
    if index is not None:
        output.print(f"tracking error {float(np.sqrt(np.mean(np.square(X @ x - index)))):.4e} per period")
    output.print(f"objective {result.fun:.6e}; {result.message}; {result.elapsed:.2f} s")
    output.written(options.out, options.report)
    output.json(
        {"command": "portfolio", "k": options.k, "periods": len(X)} | facts(result) | {"read_as": kind} | turnover
        | {"mean_return": mean, "deviation": deviation, "weights": weights}
    )  # fmt: skip
    return exit_code(result.status)


def _write_weights(
    path: Path | None, headings: tuple[str, ...], rows: list[Any], weights: Vector, names: list[str], output: Output
) -> None:
    """Write a row for each of several portfolios, with the weights of the assets that are ever held."""
    if path is not None:
        held = np.flatnonzero(weights.any(axis=0))
        lines = [(*row, *map(float, x[held])) for row, x in zip(rows, weights, strict=True)]
        output.write_csv(path, (*headings, *(names[j] for j in held)), lines)


def _show_frontier(
    assets: Assets, index: Any, k: int, rules: dict[str, Any], search: dict[str, Any], options: argparse.Namespace,
    output: Output,
) -> int:  # fmt: skip
    """Solve, print and write the efficient frontier: one row per point, with the weights in the file."""
    problem, solve = portfolio_of(assets, index, **rules), partial(solve_portfolio, **search)
    points = frontier(assets, problem, k, options.frontier, solve)
    names, means, deviations = assets.names, points.mean_returns.tolist(), points.deviations.tolist()
    rows = list(zip(means, deviations, map(str.lower, points.statuses), strict=True))
    _write_weights(options.out, ("mean return", "deviation", "status"), rows, points.weights, names, output)
    counts = np.count_nonzero(points.weights, axis=1)
    output.table(
        f"{len(points)} points, at most {k} of {len(names)} assets",
        ("mean return", "standard deviation", "assets", "status"),
        [(f"{m:.4e}", f"{d:.4e}", str(n), s.replace("_", " ")) for (m, d, s), n in zip(rows, counts, strict=True)],
    )  # fmt: skip
    output.written(options.out)
    answer = [
        {"mean_return": mean, "deviation": deviation, "status": status, "weights": by_name(names, x)}
        for mean, deviation, status, x in zip(means, deviations, points.statuses, points.weights, strict=True)
    ]
    output.json({"command": "portfolio", "k": options.k, "frontier": answer})
    return worst(exit_code(Status[status]) for status in points.statuses)


def _show_walk(
    assets: Assets, index: Any, k: int, rules: dict[str, Any], options: argparse.Namespace, output: Output
) -> int:
    """Run a walk-forward backtest, print and write it: one row per rebalancing, with the weights in the file."""
    import pandas as pd
    from sklearn.exceptions import ConvergenceWarning

    from ksparse.estimators import SparsePortfolio  # here, because other commands need not wait for scikit-learn

    names = assets.names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # printed once, below
        table = pd.DataFrame(assets.returns, columns=names)
        walk = SparsePortfolio(k, **rules).walk_forward(table, index, **_window(options.walk))
    codes = [exit_code(status) for status in walk.statuses]
    rows = list(zip(walk.starts.tolist(), walk.turnovers.tolist(), walk.costs.tolist(), strict=True))
    _write_weights(options.out, ("row", "turnover", "cost"), rows, walk.weights, names, output)
    counts = np.count_nonzero(walk.weights, axis=1)
    output.table(
        f"{len(walk)} rebalancings, at most {k} of {len(names)} assets", ("start row", "assets", "turnover", "cost"),
        [(str(start), str(n), f"{t:.4f}", f"{cost:.4e}") for (start, t, cost), n in zip(rows, counts, strict=True)],
    )  # fmt: skip
    mean, deviation = float(walk.returns.mean()), float(walk.returns.std(ddof=1)) if walk.returns.size > 1 else 0.0
    wealth = float(walk.wealth[-1])
    moments = f"mean return {mean:.4e}, standard deviation {deviation:.4e}"
    output.print(f"per period, after costs: {moments}; final wealth {wealth:.6g} (start 1)")
    if LIMIT in codes:
        output.print(f"{codes.count(LIMIT)} of {len(walk)} rebalancings stopped at the time limit")
    output.written(options.out)
    answer = [
        {"row": start, "turnover": turnover, "cost": cost, "weights": by_name(names, x)}
        for (start, turnover, cost), x in zip(rows, walk.weights, strict=True)
    ]
    found = {"mean_return": mean, "deviation": deviation, "wealth": wealth, "walk": answer}
    output.json({"command": "portfolio", "k": options.k} | found)
    return worst(codes)
