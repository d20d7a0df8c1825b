"""`ksparse portfolio`: at most k assets from a table of prices or returns."""

from __future__ import annotations

import argparse
import csv
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli.output import LIMIT, InputError, Output, Part, Report, around, exit_code, facts, warnings_of, worst
from ksparse.cli.tables import (
    amount,
    at_most,
    doubtful,
    dropped,
    number,
    numbers,
    pairs,
    read_table,
    split_dates,
    weight,
)
from ksparse.datasets import Assets
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.portfolio.frontier import frontier
from ksparse.portfolio.problem import (
    RISK_AVERSION,
    Index,
    Portfolio,
    looks_like_prices,
    portfolio,
    told_apart,
    tracking,
)
from ksparse.portfolio.rules import Universe, mandate
from ksparse.portfolio.solve import solve_portfolio
from ksparse.result import Result, Status
from ksparse.solve.judge import moved
from ksparse.util.checks import SMALLEST, check_size

OPTIONS = {  # what the options are called where errors come from
    "group_cardinalities": "--sector-names", "max_tracking_error": "--max-tracking-error", "min_weight": "--min-weight",
}  # fmt: skip

BLANK = ("", "na", "nan")  # how tables say that there is no number


def in_options(error: Exception) -> str:
    """What an error says, in the words of the options."""
    text = str(error)
    for name, option in OPTIONS.items():
        text = re.sub(rf"(?<![\w-]){name}(?!\w)", option, text)
    return text


def add_mandate(parser: argparse.ArgumentParser) -> None:
    """The options of a mandate."""
    parser.add_argument(
        "--budget", default="1", metavar="B", help="what the weights sum to, or LEAST:MOST (default: 1)"
    )
    parser.add_argument(
        "--max-short", type=weight, metavar="S", help="the short positions sum to this at most, in size"
    )
    parser.add_argument("--sectors", type=Path, metavar="FILE", help="a table of two columns: asset, sector")
    parser.add_argument("--sector-cap", type=weight, metavar="W", help="no sector above this")
    parser.add_argument("--sector-floor", type=weight, metavar="W", help="no sector below this")
    parser.add_argument(
        "--sector-names", action="append", default=[], metavar="N",
        help="at most N names of each sector; or SECTOR=N, or SECTOR=LEAST:MOST, either of them left out; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--bounds", type=Path, metavar="FILE", help="a table of three columns: asset, least weight, most; may be blank"
    )
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="TEXT",
        help="a linear rule of assets and sectors: 'tech <= 0.3'; may be repeated",
    )
    parser.add_argument(
        "--include", default="", metavar="NAME,NAME", help="assets that are always held, at --min-weight at least"
    )
    parser.add_argument("--exclude", default="", metavar="NAME,NAME", help="assets that are never held")
    parser.add_argument(
        "--holdings", type=Path, metavar="FILE", help="current weights, a table of two columns: asset, weight"
    )
    parser.add_argument(
        "--cost",
        default="0",
        metavar="C",
        help="what a unit of trade from the holdings costs, per period; or a table: asset, cost",
    )
    parser.add_argument(
        "--max-turnover", type=amount, metavar="T", help="the sum of all trades from the holdings, in size, at most"
    )


def read_mandate(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Keyword arguments of `portfolio` from the options."""
    said = said_mandate(options, names)
    return mandate(Universe(len(names), names), **said) | {
        "budget": read_budget(options.budget),
        "max_short": options.max_short,
    }


def said_mandate(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """What the options say of the weights, for `mandate`; words of the errors are those of the options."""
    known = Known(names, options.file)
    cost = _cost(options.cost, known)
    limits = {
        "--sector-cap": options.sector_cap,
        "--sector-floor": options.sector_floor,
        "--sector-names": options.sector_names or None,
    }
    for option, value in limits.items():
        if value is not None and options.sectors is None:
            raise InputError(f"{option} needs --sectors, a table of two columns: asset, sector")
    for option, asked in (("--cost", cost != 0.0), ("--max-turnover", options.max_turnover is not None)):
        if asked and options.holdings is None and options.walk is None:
            raise InputError(f"{option} needs --holdings, a table of two columns: asset, weight")
    if options.max_turnover is not None and not 0 <= options.max_turnover < np.inf:
        raise InputError(f"--max-turnover must be >= 0 and finite, got {options.max_turnover:g}")
    groups = None if options.sectors is None else _sectors(options.sectors, names)
    if groups is not None and not options.rule and all(value is None for value in limits.values()):
        raise InputError("--sectors needs --sector-cap, --sector-floor, --sector-names or a --rule that speaks of them")
    include, exclude = known.listed(options.include, "--include"), known.listed(options.exclude, "--exclude")
    lower, upper = ({}, {}) if options.bounds is None else known.bounds(options.bounds)
    return {
        "min_weights": lower or None,
        "max_weights": upper or None,
        "groups": groups,
        "group_caps": options.sector_cap,
        "group_floors": options.sector_floor,
        "group_cardinalities": _sector_names(options.sector_names, groups),
        "linear_constraints": options.rule or None,
        "forced_in": include or None,
        "forced_out": exclude or None,
        "previous_weights": None if options.holdings is None else known.numbers(options.holdings, "weight"),
        "turnover_cost": cost,
        "max_turnover": options.max_turnover,
    }


@dataclass(frozen=True)
class Known:
    """The assets of the table, of which other files may speak."""

    names: list[str]
    file: Path

    def require(self, given: Iterable[str], where: Any) -> None:
        """That all are assets of the table."""
        strange = [name for name in given if name not in self.names]
        if strange:
            raise InputError(f"{where} names {strange[0]!r}, which is not an asset of {self.file}")

    def listed(self, text: str, option: str) -> list[str]:
        """The assets that an option names: one, or several separated by commas (in double quotes where a name has a comma)."""
        parts = [text] if text in self.names else next(csv.reader([text], skipinitialspace=True), [])
        given = [part if part in self.names else part.strip() for part in parts if part.strip()]
        self.require(given, option)
        return given

    def numbers(self, path: Path, what: str, column: int = 1, blank: bool = False) -> dict[str, float]:
        """A column of numbers by asset; where blanks are nothing, those are left out."""
        given = pairs(path, "asset", what, self.names, column)
        if blank:
            given = {name: value for name, value in given.items() if value.lower() not in BLANK}
        self.require(given, path)
        for name, value in given.items() if blank else ():  # bounds of weights; holdings may be above 1
            if doubt := doubtful(value, _number(value, f"the {what} of {name!r}", path)):
                raise InputError(f"{path}: the {what} of {name!r}: {doubt}")
        return {name: _number(value, f"the {what} of {name!r}", path) for name, value in given.items()}

    def bounds(self, path: Path) -> tuple[dict[str, float], dict[str, float]]:
        """The least and the most weights of the assets that have any."""
        return self.numbers(path, "least weight", 1, blank=True), self.numbers(path, "most weight", 2, blank=True)


def read_budget(text: str) -> float | tuple[float, float]:
    """What the weights sum to, or (least, most)."""
    try:
        sides = [number(part) for part in text.split(":")]
    except ValueError:
        sides = []
    if len(sides) not in (1, 2) or not np.isfinite(sides).all():
        raise InputError(f"--budget must be a number or LEAST:MOST, such as 0.9 or 90%:100%, got {text!r}")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _cost(text: str, known: Known) -> float | dict[str, float]:
    """What a unit of trade costs: one number, or a table by asset."""
    try:
        cost: float | dict[str, float] = number(text)
    except ValueError:
        cost = known.numbers(Path(text), "cost")
    for value in [cost] if isinstance(cost, float) else cost.values():
        if not 0 <= value < np.inf:
            raise InputError(f"--cost must be >= 0 and finite, got {value:g}")
    return cost


def _sectors(path: Path, names: list[str]) -> list[str]:
    sector_of = pairs(path, "asset", "sector", names)
    lacking = [name for name in names if not sector_of.get(name)]
    if lacking:
        raise InputError(f"{path} has no sector for {lacking[0]!r}")
    return [sector_of[name] for name in names]


def _sector_names(given: list[str], groups: list[str] | None) -> dict[str, tuple[int, int | None]] | None:
    """How many names of each sector: "3", "tech=3", "tech=1:3", "tech=1:"; what is said of one counts more than what is said of all."""
    found: dict[str, tuple[int, int | None]] = {}
    for text in sorted(given, key=lambda text: "=" in text):
        sector, equals, count = text.rpartition("=")
        least, _, most = (part.strip() for part in count.rpartition(":"))
        if not (least + most) or not all(side.isdecimal() for side in (least, most) if side):
            raise InputError(f"--sector-names must be N, SECTOR=N or SECTOR=LEAST:MOST in whole numbers, got {text!r}")
        if equals and sector.strip() not in (groups or []):
            raise InputError(f"--sector-names speaks of {sector.strip()!r}, which is no sector")
        limits = int(least or 0), int(most) if most else None
        found |= dict.fromkeys([sector.strip()] if equals else groups or [], limits)
    return found or None


def _number(value: str, what: str, path: Path) -> float:
    try:
        found = number(value or "nan")
    except ValueError:
        raise InputError(f"{path} holds {value!r} as {what}, which is not a number") from None
    if not np.isfinite(found):
        raise InputError(f"{path} has nothing finite as {what}")
    return found


def refuse_beside_frontier(options: argparse.Namespace) -> None:
    """What a frontier has no use for."""
    given = {
        "--risk-aversion": options.risk_aversion,
        "--target-return": options.target_return,
        "--report": options.report,
    }
    given |= {"--cost": None if options.cost == "0" else options.cost}
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{option} has no meaning beside --frontier: leave one of them out")
    if options.index is not None and options.max_tracking_error is None:
        raise InputError("--index has no meaning beside --frontier without --max-tracking-error")
    if options.frontier < 2:
        raise InputError(f"--frontier must be at least 2 points, got {options.frontier}")


def show_frontier(assets: Assets, wanted: Portfolio, k: int, options: argparse.Namespace, output: Output) -> int:
    """Solve, show, write: one row per point, with the weights in the file."""
    how = {"min_weight": options.min_weight, "random_state": options.seed, "effort": options.effort, "gap": options.gap}
    points = frontier(
        assets.V,
        assets.r,
        wanted,
        k,
        options.frontier,
        assets.names,
        partial(solve_portfolio, max_time=options.limit, **how),
    )
    held = np.flatnonzero(points.weights.any(axis=0))
    names = [assets.names[j] for j in held]
    rows = list(
        zip(points.mean_returns.tolist(), points.deviations.tolist(), points.weights, points.statuses, strict=True)
    )
    if options.out is not None:
        lines = [(mean, risk, status.lower(), *map(float, x[held])) for mean, risk, x, status in rows]
        output.write_csv(options.out, ("mean return", "deviation", "status", *names), lines)
    output.table(
        f"{len(points)} points, at most {k} of {len(assets.names)} assets", ("mean return", "deviation", "assets", "status"),
        [(f"{mean:.4e}", f"{risk:.4e}", str(np.count_nonzero(x)), status.lower().replace("_", " ")) for mean, risk, x, status in rows],
    )  # fmt: skip
    output.written(options.out, None)
    output.json({
        "command": "portfolio", "k": options.k, "frontier": [
            {"mean_return": mean, "deviation": risk, "status": status, "weights": {assets.names[j]: float(x[j]) for j in np.flatnonzero(x)}}
            for mean, risk, x, status in rows
        ],
    })  # fmt: skip
    return worst(exit_code(Status[status]) for status in points.statuses)


def refuse_beside_walk(options: argparse.Namespace) -> None:
    """What a walk has no use for."""
    for option, value in {"--frontier": options.frontier, "--report": options.report}.items():
        if value is not None:
            raise InputError(f"{option} has no meaning beside --walk: leave one of them out")
    steps(options.walk)


def steps(text: str) -> tuple[int, int]:
    """Window and step."""
    window, _, step = text.partition(":")
    if not (window.isdigit() and step.isdigit() and int(window) >= 2 and int(step) >= 1):
        raise InputError(f"--walk must be WINDOW:STEP in whole numbers of rows, such as 500:20, got {text!r}")
    return int(window), int(step)


def show_walk(assets: Assets, index: Any, k: int, options: argparse.Namespace, output: Output) -> int:
    """Walk, show, write: one row per rebalancing, with the weights in the file."""
    import pandas as pd
    from sklearn.exceptions import ConvergenceWarning

    from ksparse.estimators import SparsePortfolio  # here: who does not walk need not wait for it

    window, step = steps(options.walk)
    model = SparsePortfolio(
        k, objective="minimize_risk" if options.min_variance else None, risk_aversion=options.risk_aversion,
        target_return=options.target_return, long_only=options.long_only, max_weight=options.max_weight, min_weight=options.min_weight,
        budget=read_budget(options.budget), max_short=options.max_short, max_tracking_error=options.max_tracking_error,
        effort=options.effort, gap=options.gap, max_time=options.limit, random_state=options.seed, **said_mandate(options, assets.names),
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said once, below
            walk = model.walk_forward(
                pd.DataFrame(assets.returns, columns=assets.names), index, window=window, step=step
            )
    except ValueError as error:
        raise (InfeasibleError if isinstance(error, InfeasibleError) else InputError)(in_options(error)) from error
    codes = [exit_code(status) for status in walk.statuses]
    cut = codes.count(LIMIT)
    held = np.flatnonzero(walk.weights.any(axis=0))
    rows = list(zip(walk.starts.tolist(), walk.weights, walk.turnovers.tolist(), walk.costs.tolist(), strict=True))
    if options.out is not None:
        lines = [(start, turnover, cost, *map(float, x[held])) for start, x, turnover, cost in rows]
        output.write_csv(options.out, ("row", "turnover", "cost", *(assets.names[j] for j in held)), lines)
    output.table(
        f"{len(walk)} rebalancings, at most {k} of {len(assets.names)} assets", ("from return", "assets", "turnover", "cost"),
        [(str(start), str(np.count_nonzero(x)), f"{turnover:.4f}", f"{cost:.4e}") for start, x, turnover, cost in rows],
    )  # fmt: skip
    mean, deviation = float(walk.returns.mean()), float(walk.returns.std(ddof=1)) if walk.returns.size > 1 else 0.0
    output.say(
        f"per period, after costs: mean return {mean:.4e}, deviation {deviation:.4e}; 1 has grown to {walk.wealth[-1]:.6g}"
    )
    if cut:
        output.say(f"{cut} of {len(walk)} rebalancings were cut short by the limit")
    output.written(options.out, None)
    output.json({
        "command": "portfolio", "k": options.k, "mean_return": mean, "deviation": deviation, "wealth": float(walk.wealth[-1]), "walk": [
            {"row": start, "turnover": turnover, "cost": cost, "weights": {assets.names[j]: float(x[j]) for j in np.flatnonzero(x)}}
            for start, x, turnover, cost in rows
        ],
    })  # fmt: skip
    return worst(codes)


HELP = "a portfolio of at most k assets from prices or returns"
EXAMPLES = (
    "ksparse portfolio prices.csv -k 10 --long-only --max-weight 20% --min-weight 1% --out weights.csv",
    "ksparse portfolio returns.csv --returns -k 20 --target-return 0.0005 --report page.html",
    "ksparse portfolio - -k 10 --long-only --out - < prices.csv",
    "ksparse portfolio prices.csv -k 12 --long-only --sectors sectors.csv --sector-cap 0.25 --rule 'AAPL + MSFT <= 0.1' "
    "--holdings weights.csv --cost 0.0002 --max-turnover 0.3",
    "ksparse portfolio prices.csv -k 12 --long-only --min-weight 0.02 --sectors sectors.csv --sector-names 3 --sector-names energy=1:2",
    "ksparse portfolio prices.csv -k 20 --long-only --index SPX",
    "ksparse portfolio prices.csv -k 10 --long-only --max-weight 0.2 --frontier 50 --out frontier.csv",
    "ksparse portfolio prices.csv -k 10 --long-only --max-weight 0.2 --walk 500:20 --cost 0.002 --max-turnover 0.5 --out walk.csv",
    "ksparse portfolio prices.csv -k 20 --long-only --index SPX --max-tracking-error 0.004 --min-variance",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "file", type=Path, metavar="TABLE",
        help="prices or returns, told apart by their numbers, one column per asset, one row per period: CSV, Parquet or NPZ",
    )  # fmt: skip
    parser.add_argument("-k", type=int, required=True, help="how many assets at most")
    parser.add_argument(
        "--risk-aversion",
        type=float,
        metavar="A",
        help=f"minimise A times the variance minus the mean return (default: {RISK_AVERSION:g})",
    )
    parser.add_argument("--min-variance", action="store_true", help="minimise the variance alone")
    parser.add_argument(
        "--index", metavar="COLUMN", help="track this column of the table: least mean squared distance of returns"
    )
    parser.add_argument(
        "--max-tracking-error",
        type=amount,
        metavar="E",
        help="do not track --index, but stay as near: root mean squared distance at most E",
    )
    parser.add_argument(
        "--target-return", type=amount, metavar="R", help="mean return to reach per period; alone: least variance there"
    )
    parser.add_argument(
        "--frontier", type=int, metavar="N", help="N portfolios, from the least variance to the largest mean return"
    )
    parser.add_argument(
        "--walk",
        metavar="WINDOW:STEP",
        help="fit on WINDOW rows, hold for STEP, rebalance, to the end; --cost is then what a trade costs",
    )
    parser.add_argument("--long-only", action="store_true", help="no negative weight")
    parser.add_argument("--max-weight", type=weight, metavar="W", help="no weight beyond this, in size: 0.2 or 20%%")
    parser.add_argument(
        "--min-weight", type=weight, default=0.0, metavar="W", help="no position smaller than this, in size"
    )
    add_mandate(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--prices", action="store_true", help="the table holds prices, whatever it looks like")
    kind.add_argument("--returns", action="store_true", help="the table holds returns, whatever it looks like")
    parser.add_argument("--dates", metavar="COLUMN", help="the column of dates, where it is not the first")
    parser.add_argument("--drop", default="", metavar="COL,COL", help="columns to leave out")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write the weights here")


def run(options: argparse.Namespace, output: Output) -> int:
    """Read, solve, show, write."""
    output.claim(options.out)
    output.claim(options.report)
    above = {"--risk-aversion": options.risk_aversion, "--max-weight": options.max_weight}
    for option, value in (above | {"--max-tracking-error": options.max_tracking_error}).items():
        if value is not None and not value > 0:
            raise InputError(f"{option} must be > 0, got {value:g}")
    if not 0 <= options.min_weight < np.inf:
        raise InputError(f"--min-weight must be >= 0 and finite, got {options.min_weight:g}")
    if options.max_weight is not None and options.min_weight > options.max_weight:
        raise InfeasibleError(f"--min-weight {options.min_weight:g} is above --max-weight {options.max_weight:g}")
    if options.frontier is not None:
        refuse_beside_frontier(options)
    if options.walk is not None:
        refuse_beside_walk(options)
    table, what = _assets(options, output)
    assets, index = _without_index(table, options)
    k = at_most(options.k, len(assets.names), "asset", output.note)
    if options.walk is not None:
        return show_walk(assets, index, k, options, output)
    wanted = _wanted(assets, index, options)
    if options.frontier is not None:
        try:
            return show_frontier(assets, wanted, k, options, output)
        except (InfeasibleError, ValueError) as error:
            raise type(error)(in_options(error)) from error
    follows = index is not None and options.max_tracking_error is None
    held_nothing = (
        0.0 if not follows else float(np.mean(np.square(index)))
    )  # what the distance is above the problem's value
    common = {"min_weight": options.min_weight, "max_time": options.limit, "random_state": options.seed}
    try:
        found = solve_portfolio(wanted, k, effort=options.effort, gap=options.gap, **common)
    except (InfeasibleError, ValueError) as error:
        raise type(error)(in_options(error)) from error
    result = moved(found, held_nothing)
    if result.status is Status.UNBOUNDED:
        raise UnboundedError(
            "some portfolio has no risk and as much return as one likes: add --long-only, or --max-weight"
        )
    x = np.asarray(result.x)
    order = [int(j) for j in np.argsort(-np.abs(x), kind="stable") if x[j] != 0]
    mean, deviation = float(assets.r @ x), float(np.sqrt(max(0.0, x @ assets.V @ x)))
    if options.out is not None:  # before anything is printed: trouble on the screen does not lose the answer
        output.write_csv(options.out, ("asset", "weight"), [(assets.names[j], float(x[j])) for j in order])
    if options.report is not None:
        output.write(options.report, _report(result, wanted, assets, k, options, held_nothing).html())
    output.table(
        f"{len(order)} of {len(assets.names)} assets", ("asset", "weight", "mean return"),
        [(assets.names[j], f"{100 * x[j]:.2f} %", f"{assets.r[j]:.3e}") for j in order],
    )  # fmt: skip
    output.say(
        f"from {what}, per period: mean return {mean:.4e}, deviation {deviation:.4e}; weights sum to {x.sum():.12g}"
    )
    turnover = None if wanted.held is None else float(np.abs(x - wanted.held).sum())
    if turnover is not None:
        output.say(
            f"turnover {turnover:.6g} from the holdings, at a cost of {float(wanted.cost @ np.abs(x - wanted.before)):.4e}"
        )
    if index is not None and assets.returns is not None:
        output.say(f"tracking error {float(np.sqrt(np.mean(np.square(assets.returns @ x - index)))):.4e} per period")
    output.say(f"objective {result.fun:.6e}; {result.message}; {result.elapsed:.2f} s")
    output.written(options.out, options.report)
    output.json(
        {"command": "portfolio", "k": options.k, "periods": len(assets.returns) if assets.returns is not None else None}
        | facts(result)
        | {"read_as": what}
        | ({} if turnover is None else {"turnover": turnover})
        | {"mean_return": mean, "deviation": deviation, "weights": {assets.names[j]: x[j] for j in order}}
    )
    return exit_code(result.status)


def _wanted(assets: Assets, index: Any, options: argparse.Namespace) -> Portfolio:
    """The problem that the options describe."""
    rules = read_mandate(options, assets.names) | {"long_only": options.long_only, "max_weight": options.max_weight}
    if options.max_tracking_error is not None:
        if index is None:
            raise InputError("--max-tracking-error needs --index, the column to stay near to")
        assert assets.returns is not None
        rules |= {"index": Index(assets.returns, index, options.max_tracking_error)}
    elif index is not None:
        asked = {"--risk-aversion": options.risk_aversion, "--target-return": options.target_return}
        for option, value in (asked | {"--min-variance": options.min_variance or None}).items():
            if value is not None:
                raise InputError(
                    f"{option} has no meaning beside --index without --max-tracking-error: leave one of them out"
                )
        assert assets.returns is not None
        return tracking(assets.returns, index, **rules)
    objective = "minimize_risk" if options.min_variance or options.frontier is not None else None
    if options.min_variance and options.risk_aversion is not None:
        raise InputError("--risk-aversion has no meaning beside --min-variance: leave one of them out")
    return portfolio(
        assets.V,
        assets.r,
        objective=objective,
        risk_aversion=options.risk_aversion,
        target_return=options.target_return,
        **rules,
    )


def _without_index(assets: Assets, options: argparse.Namespace) -> tuple[Assets, Any]:
    """The assets, and the returns of the index where a column is one."""
    if options.index is None:
        return assets, None
    if options.index not in assets.names:
        raise InputError(f"--index {options.index!r} is not a column of {options.file}")
    at = assets.names.index(options.index)
    others = [name for name in assets.names if name != options.index]
    if not others:
        raise InputError(f"{options.file} has no asset beside the index {options.index!r}")
    assert assets.returns is not None
    return Assets.from_returns(np.delete(assets.returns, at, axis=1), others), assets.returns[:, at]


def _report(
    result: Result, wanted: Portfolio, assets: Assets, k: int, options: argparse.Namespace, constant: float
) -> Report:
    x = np.asarray(result.x)
    order = [int(j) for j in np.argsort(-np.abs(x), kind="stable") if x[j] != 0]
    mean, deviation = float(assets.r @ x), float(np.sqrt(max(0.0, x @ assets.V @ x)))
    said = {
        "mean return per period": f"{mean:.6g}",
        "deviation per period": f"{deviation:.6g}",
        "weights sum to": f"{x.sum():.12g}",
    }
    part = Part("The portfolio", result, {assets.names[j]: float(x[j]) for j in order}, "weight", said)

    def solve(near: int) -> float:
        if near == k:
            return result.fun
        found = solve_portfolio(
            wanted, near, min_weight=options.min_weight, max_time=options.limit, random_state=options.seed
        )
        return found.fun + constant

    told = [] if assets.returns is None else warnings_of(assets.returns, assets.names)
    title = f"{len(order)} of {len(assets.names)} assets"
    return Report(title, options.command_line, [part], around(k, len(assets.names), solve), k, told)


def _assets(options: argparse.Namespace, output: Output) -> tuple[Assets, str]:
    """The assets of the table, and what it was read as."""
    table = read_table(options.file)
    table = dropped(table, options.drop, options.file)
    dates, table = split_dates(table, options.dates)
    if table.columns.empty:
        raise InputError(f"{options.file} has no column of prices")
    values = numbers(table, hint="; if it holds dates, name it with --dates")
    what = _kind(values, options)
    needed = 2 if what == "returns" else 3
    if len(values) < needed:
        raise InputError(
            f"{options.file} has {len(values)} rows of {what}, too few for a covariance: at least {needed} are needed"
        )
    if options.returns and looks_like_prices(values):
        output.note("the table looks like prices; without --returns it is read as such")
    if what == "returns":
        check_size(values, f"{options.file}", table.columns, least=SMALLEST)
        return Assets.from_returns(values, list(table.columns)), what
    low = np.argwhere(values <= 0)
    if low.size:
        row, column = (int(i) for i in low[0])
        place = f"row {row + 1}" if dates is None else f"row {row + 1} ({dates[row]})"
        held = f"column {table.columns[column]!r} holds {values[row, column]:g} in {place}"
        raise InputError(f"prices must be > 0: {held}; for a table of returns add --returns")
    returns: Any = values[1:] / values[:-1] - 1.0
    check_size(returns, f"the returns of {options.file}", table.columns)
    return Assets.from_returns(returns, list(table.columns)), what


def _kind(values: Any, options: argparse.Namespace) -> str:
    """Whether the table holds prices or returns, as the user says or as its numbers do."""
    what = "prices" if options.prices else "returns" if options.returns else told_apart(values)
    if what is None:
        raise InputError(
            f"{options.file} could hold prices or returns: none of its numbers is below 0, and they are small (the median is "
            f"{np.median(values):g}) and do not go in small steps: say --prices or --returns"
        )
    return what
