"""The rules of a portfolio on the command line: sectors and holdings from files, sentences, names, costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli.exits import InputError
from ksparse.cli.tables import pairs
from ksparse.models.mandate import mandate
from ksparse.models.rules import Universe


def add_mandate(parser: argparse.ArgumentParser) -> None:
    """The options of a mandate."""
    parser.add_argument("--budget", type=float, default=1.0, metavar="B", help="what the weights sum to (default: 1)")
    parser.add_argument("--max-short", type=float, metavar="S", help="the short positions sum to this at most, in size")
    parser.add_argument("--sectors", type=Path, metavar="FILE", help="a table of two columns: asset, sector")
    parser.add_argument("--sector-cap", type=float, metavar="W", help="no sector above this")
    parser.add_argument("--sector-floor", type=float, metavar="W", help="no sector below this")
    parser.add_argument(
        "--rule", action="append", default=[], metavar="TEXT", help="a linear rule of assets and sectors: 'tech <= 0.3'; may be repeated"
    )
    parser.add_argument("--include", default="", metavar="NAME,NAME", help="assets that are always held, at --min-weight at least")
    parser.add_argument("--exclude", default="", metavar="NAME,NAME", help="assets that are never held")
    parser.add_argument("--holdings", type=Path, metavar="FILE", help="current weights, a table of two columns: asset, weight")
    parser.add_argument("--cost", type=float, default=0.0, metavar="C", help="what a unit of trade from the holdings costs, per period")
    parser.add_argument("--max-turnover", type=float, metavar="T", help="the sum of all trades from the holdings, in size, at most")


def read_mandate(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Keyword arguments of `portfolio` from the options; words of its errors are those of the options."""
    for option, value in (("--sector-cap", options.sector_cap), ("--sector-floor", options.sector_floor)):
        if value is not None and options.sectors is None:
            raise InputError(f"{option} needs --sectors, a table of two columns: asset, sector")
    for option, value in (("--cost", options.cost or None), ("--max-turnover", options.max_turnover)):
        if value is not None and options.holdings is None:
            raise InputError(f"{option} needs --holdings, a table of two columns: asset, weight")
        if value is not None and not 0 <= value < np.inf:
            raise InputError(f"{option} must be >= 0 and finite, got {value:g}")
    groups = None
    if options.sectors is not None:
        sector_of = pairs(options.sectors, "asset", "sector")
        lacking = [name for name in names if name not in sector_of]
        if lacking:
            raise InputError(f"{options.sectors} has no sector for {lacking[0]!r}")
        groups = [str(sector_of[name]) for name in names]
        if options.sector_cap is None and options.sector_floor is None and not options.rule:
            raise InputError("--sectors needs --sector-cap, --sector-floor or a --rule that speaks of them")
    held = None
    if options.holdings is not None:
        held = {name: _weight(value, name, options.holdings) for name, value in pairs(options.holdings, "asset", "weight").items()}
        strange = [name for name in held if name not in names]
        if strange:
            raise InputError(f"{options.holdings} names {strange[0]!r}, which is not an asset of {options.file}")
    for option, text in (("--include", options.include), ("--exclude", options.exclude)):
        strange = [name for name in _listed(text) if name not in names]
        if strange:
            raise InputError(f"{option} names {strange[0]!r}, which is not an asset of {options.file}")
    read = mandate(
        Universe(len(names), names), groups=groups, group_caps=options.sector_cap, group_floors=options.sector_floor,
        linear_constraints=options.rule or None, forced_in=_listed(options.include), forced_out=_listed(options.exclude),
        previous_weights=held, turnover_cost=options.cost, max_turnover=options.max_turnover,
    )  # fmt: skip
    return read | {"budget": options.budget, "max_short": options.max_short}


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _weight(value: Any, name: str, path: Path) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{path} holds {value!r} as the weight of {name!r}, which is not a number") from None
    if not np.isfinite(number):
        raise InputError(f"{path} has no finite weight for {name!r}")
    return number
