"""`ksparse portfolio`: at most k assets from a table of prices or returns."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli.dates import split_dates
from ksparse.cli.exits import InputError, exit_code
from ksparse.cli.frontier import refuse_beside_frontier, show_frontier
from ksparse.cli.mandate import add_mandate, in_options, read_mandate
from ksparse.cli.output import Output, facts
from ksparse.cli.page import Part, Report, around, warnings_of
from ksparse.cli.shares import amount, weight
from ksparse.cli.tables import at_most, dropped, numbers, read_table
from ksparse.cli.walk import refuse_beside_walk, show_walk
from ksparse.datasets import Assets
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.models.index import Index
from ksparse.models.portfolio import RISK_AVERSION, Portfolio, portfolio, tracking
from ksparse.models.prices import looks_like_prices, told_apart
from ksparse.models.solve_portfolio import solve_portfolio
from ksparse.result import Result, Status
from ksparse.solve.judge import moved
from ksparse.util.checks import SMALLEST, check_size

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
        "--risk-aversion", type=float, metavar="A", help=f"minimise A times the variance minus the mean return (default: {RISK_AVERSION:g})"
    )
    parser.add_argument("--min-variance", action="store_true", help="minimise the variance alone")
    parser.add_argument("--index", metavar="COLUMN", help="track this column of the table: least mean squared distance of returns")
    parser.add_argument(
        "--max-tracking-error",
        type=amount,
        metavar="E",
        help="do not track --index, but stay as near: root mean squared distance at most E",
    )
    parser.add_argument("--target-return", type=amount, metavar="R", help="mean return to reach per period; alone: least variance there")
    parser.add_argument("--frontier", type=int, metavar="N", help="N portfolios, from the least variance to the largest mean return")
    parser.add_argument(
        "--walk", metavar="WINDOW:STEP", help="fit on WINDOW rows, hold for STEP, rebalance, to the end; --cost is then what a trade costs"
    )
    parser.add_argument("--long-only", action="store_true", help="no negative weight")
    parser.add_argument("--max-weight", type=weight, metavar="W", help="no weight beyond this, in size: 0.2 or 20%%")
    parser.add_argument("--min-weight", type=weight, default=0.0, metavar="W", help="no position smaller than this, in size")
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
    held_nothing = 0.0 if not follows else float(np.mean(np.square(index)))  # what the distance is above the problem's value
    common = {"min_weight": options.min_weight, "max_time": options.limit, "random_state": options.seed}
    try:
        found = solve_portfolio(wanted, k, effort=options.effort, gap=options.gap, **common)
    except (InfeasibleError, ValueError) as error:
        raise type(error)(in_options(error)) from error
    result = moved(found, held_nothing)
    if result.status is Status.UNBOUNDED:
        raise UnboundedError("some portfolio has no risk and as much return as one likes: add --long-only, or --max-weight")
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
    output.say(f"from {what}, per period: mean return {mean:.4e}, deviation {deviation:.4e}; weights sum to {x.sum():.12g}")
    turnover = None if wanted.held is None else float(np.abs(x - wanted.held).sum())
    if turnover is not None:
        output.say(f"turnover {turnover:.6g} from the holdings, at a cost of {float(wanted.cost @ np.abs(x - wanted.before)):.4e}")
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
                raise InputError(f"{option} has no meaning beside --index without --max-tracking-error: leave one of them out")
        assert assets.returns is not None
        return tracking(assets.returns, index, **rules)
    objective = "minimize_risk" if options.min_variance or options.frontier is not None else None
    if options.min_variance and options.risk_aversion is not None:
        raise InputError("--risk-aversion has no meaning beside --min-variance: leave one of them out")
    return portfolio(
        assets.V, assets.r, objective=objective, risk_aversion=options.risk_aversion, target_return=options.target_return, **rules
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


def _report(result: Result, wanted: Portfolio, assets: Assets, k: int, options: argparse.Namespace, constant: float) -> Report:
    x = np.asarray(result.x)
    order = [int(j) for j in np.argsort(-np.abs(x), kind="stable") if x[j] != 0]
    mean, deviation = float(assets.r @ x), float(np.sqrt(max(0.0, x @ assets.V @ x)))
    said = {"mean return per period": f"{mean:.6g}", "deviation per period": f"{deviation:.6g}", "weights sum to": f"{x.sum():.12g}"}
    part = Part("The portfolio", result, {assets.names[j]: float(x[j]) for j in order}, "weight", said)

    def solve(near: int) -> float:
        if near == k:
            return result.fun
        found = solve_portfolio(wanted, near, min_weight=options.min_weight, max_time=options.limit, random_state=options.seed)
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
        raise InputError(f"{options.file} has {len(values)} rows of {what}, too few for a covariance: at least {needed} are needed")
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
