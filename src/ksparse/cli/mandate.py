"""The rules of a portfolio on the command line: sectors and holdings from files, sentences, names, costs."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.cli.exits import InputError
from ksparse.cli.shares import amount, doubtful, number, weight
from ksparse.cli.tables import pairs
from ksparse.models.mandate import mandate
from ksparse.models.rules import Universe

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
    parser.add_argument("--budget", default="1", metavar="B", help="what the weights sum to, or LEAST:MOST (default: 1)")
    parser.add_argument("--max-short", type=weight, metavar="S", help="the short positions sum to this at most, in size")
    parser.add_argument("--sectors", type=Path, metavar="FILE", help="a table of two columns: asset, sector")
    parser.add_argument("--sector-cap", type=weight, metavar="W", help="no sector above this")
    parser.add_argument("--sector-floor", type=weight, metavar="W", help="no sector below this")
    parser.add_argument(
        "--sector-names", action="append", default=[], metavar="N",
        help="at most N names of each sector; or SECTOR=N, or SECTOR=LEAST:MOST, either of them left out; may be repeated",
    )  # fmt: skip
    parser.add_argument("--bounds", type=Path, metavar="FILE", help="a table of three columns: asset, least weight, most; may be blank")
    parser.add_argument(
        "--rule", action="append", default=[], metavar="TEXT", help="a linear rule of assets and sectors: 'tech <= 0.3'; may be repeated"
    )
    parser.add_argument("--include", default="", metavar="NAME,NAME", help="assets that are always held, at --min-weight at least")
    parser.add_argument("--exclude", default="", metavar="NAME,NAME", help="assets that are never held")
    parser.add_argument("--holdings", type=Path, metavar="FILE", help="current weights, a table of two columns: asset, weight")
    parser.add_argument(
        "--cost", default="0", metavar="C", help="what a unit of trade from the holdings costs, per period; or a table: asset, cost"
    )
    parser.add_argument("--max-turnover", type=amount, metavar="T", help="the sum of all trades from the holdings, in size, at most")


def read_mandate(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Keyword arguments of `portfolio` from the options."""
    said = said_mandate(options, names)
    return mandate(Universe(len(names), names), **said) | {"budget": read_budget(options.budget), "max_short": options.max_short}


def said_mandate(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """What the options say of the weights, for `mandate`; words of the errors are those of the options."""
    known = Known(names, options.file)
    cost = _cost(options.cost, known)
    limits = {"--sector-cap": options.sector_cap, "--sector-floor": options.sector_floor, "--sector-names": options.sector_names or None}
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
