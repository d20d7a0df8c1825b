"""What practitioners say of weights, as numbers and rows: bounds by name, sectors, and sentences such as "AAPL + MSFT >= 0.1"."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer, check_number

NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
COMPARISON = re.compile(r"<=|>=|==|=|<|>")
WORD = re.compile(r"[^\s+*<>=]+")  # what an unknown name looks like, for the message


@dataclass(frozen=True)
class Rows:
    """Linear rules: Gx ≤ h and Ex = f."""

    G: Vector
    h: Vector
    E: Vector
    f: Vector

    @classmethod
    def of(
        cls, n: int, inequalities: Sequence[tuple[Vector, float]] = (), equations: Sequence[tuple[Vector, float]] = ()
    ) -> Rows:
        """The rows of pairs (row, right-hand side)."""

        def stacked(pairs: Sequence[tuple[Vector, float]]) -> tuple[Vector, Vector]:
            return np.array([row for row, _ in pairs], dtype=float).reshape(-1, n), np.array(
                [right for _, right in pairs], dtype=float
            )

        return cls(*stacked(inequalities), *stacked(equations))

    def and_(self, other: Rows) -> Rows:
        """Both."""
        return Rows(
            np.vstack([self.G, other.G]),
            np.concatenate([self.h, other.h]),
            np.vstack([self.E, other.E]),
            np.concatenate([self.f, other.f]),
        )


@dataclass(frozen=True)
class Universe:
    """The assets that rules speak of: how many, and their names where they have any."""

    n: int
    names: Sequence[Any] | None = None

    def place(self, asset: Any, argument: str) -> int:
        """The index of an asset, by name or by number."""
        if self.names is not None and asset in (known := list(self.names)):
            return known.index(asset)
        if isinstance(asset, numbers.Integral) and not isinstance(asset, bool | np.bool_):
            if not 0 <= int(asset) < self.n:
                raise ValueError(f"{argument} must name assets by 0..{self.n - 1}, got {asset}")
            return int(asset)
        raise ValueError(
            f"{argument} names {asset!r}, which is not an asset"
            + ("" if self.names is not None else ": X has no column names")
        )

    def numbers(self, given: Any, argument: str, default: float) -> Vector:
        """One number per asset: from one for all, an array, or a mapping or Series by name in which others have the default."""
        if given is None:
            return np.full(self.n, default)
        if hasattr(given, "to_dict") and self.names is not None:  # a Series: its own names count, not its order
            given = given.to_dict()
        if isinstance(given, Mapping):
            out = np.full(self.n, default)
            for asset, value in given.items():
                out[self.place(asset, argument)] = self._number(value, argument)
            return out
        if np.ndim(given) == 0:
            return np.full(self.n, self._number(given, argument))
        try:
            out = np.array(given, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"{argument} must be a number, one per asset, or a mapping from name to number, got {given!r}"
            ) from None
        if out.shape != (self.n,):
            raise ValueError(f"{argument} must hold one number per asset, {self.n}, got shape {out.shape}")
        if np.isnan(out).any():
            raise ValueError(f"{argument} must not hold NaN, asset {int(np.isnan(out).argmax())} has one")
        return out

    @staticmethod
    def _number(value: Any, argument: str) -> float:
        """A number that may be infinite, as bounds may."""
        endless = isinstance(value, numbers.Real) and math.isinf(float(value))
        return float(value) if endless else check_number(value, argument)

    def groups(self, given: Any) -> dict[Any, Vector]:
        """The assets of each group: from labels, one per asset, or a mapping from group to its assets (names, indices or mask)."""
        if given is None:
            return {}
        if hasattr(given, "to_dict") and self.names is not None:
            known = given.to_dict()
            lacking = [name for name in self.names if name not in known]
            if lacking:
                raise ValueError(f"groups must hold a label for every asset, {lacking[0]!r} has none")
            given = [known[name] for name in self.names]
        if isinstance(given, Mapping):
            return {group: self.members(assets, "groups") for group, assets in given.items()}
        labels = list(given)
        if len(labels) != self.n:
            raise ValueError(f"groups must hold one label per asset, {self.n}, got {len(labels)}")
        return {
            group: np.array([i for i, label in enumerate(labels) if label == group]) for group in dict.fromkeys(labels)
        }

    def members(self, given: Any, argument: str) -> Vector:
        """Indices of assets from names, indices or a mask."""
        entries = [given] if isinstance(given, str) or np.ndim(given) == 0 else list(given)
        if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
            if len(entries) != self.n:
                raise ValueError(f"{argument} as a mask must have one entry per asset, {self.n}, got {len(entries)}")
            return np.flatnonzero(entries)
        return np.array(sorted({self.place(entry, argument) for entry in entries}), dtype=np.intp)


def group_limits(
    n: int, members: Mapping[Any, Vector], given: Any, argument: str, sign: float
) -> list[tuple[Vector, float]]:
    """Rows for the most (sign 1) or the least (−1) that the weights of a group sum to: one number, or a mapping from group to number."""
    if given is None:
        return []
    if not members:
        raise ValueError(f"{argument} requires groups")
    if isinstance(given, numbers.Real):
        given = dict.fromkeys(members, given)
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must be one number or a mapping from group to number, got {type(given).__name__}")
    pairs = []
    for group, limit in given.items():
        if group not in members:
            raise ValueError(f"{argument} names {group!r}, which is not among the groups")
        row = np.zeros(n)
        row[members[group]] = sign
        pairs.append((row, sign * check_number(limit, argument)))
    return pairs


def sentences(given: Any, universe: Universe, members: Mapping[Any, Vector]) -> Rows:
    """Rows from sentences such as "tech <= 0.3", "2*AAPL + MSFT >= 0.1", "0.1 <= energy <= 0.4", "AAPL == MSFT".

    Names are those of assets and of groups, which stand for the sum of their assets; names with blanks or signs in them may be quoted,
    names that look like numbers must be.
    """
    if given is None:
        return Rows.of(universe.n)
    texts = [given] if isinstance(given, str) else list(given)
    inequalities: list[tuple[Vector, float]] = []
    equations: list[tuple[Vector, float]] = []
    known = _meanings(universe, members)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"linear_constraints must hold strings such as 'tech <= 0.3', got {text!r}")
        sides, signs = _compared(text, known)
        for left, sign, right in zip(sides, signs, sides[1:], strict=False):
            row = _row(left, universe.n, known, text) - _row(
                right, universe.n, known, text
            )  # the last entry is the constant
            if not row[:-1].any():
                raise ValueError(
                    f"linear_constraints: {text!r} says nothing of any asset (a name that looks like a number needs quotes)"
                )
            if sign in ("=", "=="):
                equations.append((row[:-1], -float(row[-1])))
            else:
                way = 1.0 if sign in ("<=", "<") else -1.0
                inequalities.append((way * row[:-1], -way * float(row[-1])))
    return Rows.of(universe.n, inequalities, equations)


def _meanings(universe: Universe, members: Mapping[Any, Vector]) -> dict[str, Vector]:
    """What each name stands for; longer names first, so that the longest is read."""
    known: dict[str, Vector] = {}
    assets: Sequence[Hashable] = universe.names if universe.names is not None else [f"x{i}" for i in range(universe.n)]
    for i, asset in enumerate(assets):
        known[str(asset)] = np.array([i])
    for group, inside in members.items():
        if str(group) in known:
            raise ValueError(
                f"groups has a group {group!r} that is the name of an asset: linear_constraints could mean either"
            )
        known[str(group)] = inside
    return dict(sorted(known.items(), key=lambda item: -len(item[0])))


Token = tuple[str, Any]  # ("name", …), ("number", …), ("sign", …), ("compared", …)


def _compared(text: str, known: Mapping[str, Vector]) -> tuple[list[list[Token]], list[str]]:
    """The sides of a sentence, and the comparisons between them."""
    sides: list[list[Token]] = [[]]
    signs: list[str] = []
    for token in _tokens(text, known):
        if token[0] == "compared":
            signs.append(token[1])
            sides.append([])
        else:
            sides[-1].append(token)
    if not signs:
        raise ValueError(f"linear_constraints: {text!r} has no <=, >= or ==")
    if not all(sides):
        raise ValueError(f"linear_constraints: {text!r} has nothing on one side of {signs[0]}")
    return sides, signs


def _tokens(text: str, known: Mapping[str, Vector]) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        quoted, number, compared = QUOTED.match(text, at), NUMBER.match(text, at), COMPARISON.match(text, at)
        if quoted:
            name = quoted.group(1) or quoted.group(2) or ""
            at = quoted.end()
        elif compared:
            tokens.append(("compared", compared.group()))
            at = compared.end()
            continue
        elif number and not _goes_on(text, number.end()):
            if number.group() in known:
                raise ValueError(
                    f"linear_constraints: {number.group()!r} in {text!r} is a number and a name: put the name in quotes, or write the "
                    f"number otherwise, as in {_otherwise(number.group(), known)}"
                )
            at = number.end()
            percent = text.startswith("%", at)
            tokens.append(("number", float(number.group()) / (100.0 if percent else 1.0)))
            at += percent
            continue
        elif found := next(
            (name for name in known if name and text.startswith(name, at) and not _goes_on(text, at + len(name))), None
        ):
            name, at = found, at + len(found)
        elif text[at] in "+-*":
            tokens.append(("sign", text[at]))
            at += 1
            continue
        else:
            word = WORD.match(text, at)
            name = text[at] if word is None else word.group()
        if name not in known:
            raise ValueError(f"linear_constraints: {name!r} in {text!r} is neither an asset nor a group")
        tokens.append(("name", name))
    return tokens


def _otherwise(number: str, known: Mapping[str, Vector]) -> str:
    """The same number, in digits that are no name."""
    spelt = repr(float(number)) if "e" not in repr(float(number)) else f"{float(number):.1f}"
    while spelt in known:
        spelt += "0"
    return spelt


def _goes_on(text: str, at: int) -> bool:
    """Whether a word goes on here."""
    return at < len(text) and (text[at].isalnum() or text[at] == "_")


def _row(side: list[Token], n: int, known: Mapping[str, Vector], text: str) -> Vector:
    """The coefficients of a sum, and its constant as the last entry."""
    row, coefficient, name = np.zeros(n + 1), 1.0, None
    sign, started, open_ = 1.0, False, True  # open: whether a factor may come

    def close() -> None:
        row[n if name is None else known[name]] += sign * coefficient

    for kind, what in side:
        if kind in ("number", "name"):
            # "2 AAPL" may leave the * out; two names, or two numbers, side by side may not
            if not open_ and not (kind == "name" and name is None):
                raise ValueError(f"linear_constraints: {text!r} lacks + or * before {what!r}")
            if kind == "name":
                if name is not None:
                    raise ValueError(
                        f"linear_constraints: {text!r} multiplies {name!r} by {what!r}: only sums with coefficients are linear"
                    )
                name = what
            else:
                coefficient *= what
            started, open_ = True, False
        elif what == "*":
            if open_:
                raise ValueError(f"linear_constraints: {text!r} has a * with nothing before it")
            open_ = True
        else:
            if started and open_:
                raise ValueError(f"linear_constraints: {text!r} has a {what} after *")
            if started:
                close()
                coefficient, name, sign, started = 1.0, None, 1.0, False
            sign, open_ = -sign if what == "-" else sign, True
    if not started or open_:
        raise ValueError(f"linear_constraints: {text!r} ends where a name or a number is needed")
    close()
    return row


ARGUMENT = "group_cardinalities"


@dataclass(frozen=True)
class Cardinalities:
    """The least and the most names of some groups that share no asset."""

    group: Vector  # of each asset, as a number; −1 where its group has no limits
    limits: dict[Any, tuple[int, int | None]]  # of group 0, 1, …, by what the user calls them

    @classmethod
    def read(cls, given: Any, members: Mapping[Any, Vector], n: int) -> Cardinalities | None:
        """From one number for all groups, or a mapping from group to the most, or to (least, most); None where nothing is said."""
        if given is None:
            return None
        if not members:
            raise ValueError(f"{ARGUMENT} needs groups: which assets belong to which")
        if isinstance(given, numbers.Integral) and not isinstance(given, bool):
            given = dict.fromkeys(members, given)
        if not isinstance(given, Mapping):
            raise TypeError(
                f"{ARGUMENT} must be one whole number or a mapping from group to the most, or (least, most), got {given!r}"
            )
        group, limits = np.full(n, -1, dtype=np.intp), {}
        for place, (name, said) in enumerate(given.items()):
            if name not in members:
                raise ValueError(f"{ARGUMENT} names {name!r}, which is not among the groups")
            limits[name] = _limits(name, said)
            twice = members[name][group[members[name]] >= 0]
            if twice.size:
                raise ValueError(
                    f"{ARGUMENT} limits {list(limits)[group[twice[0]]]!r} and {name!r}, which share asset {twice[0]}: groups with limits "
                    "must not overlap"
                )
            group[members[name]] = place
        return cls(group, limits)

    def for_core(self, group: Vector | None = None) -> tuple[list[int], dict[int, tuple[int, int | None]]]:
        """As `group_limits` of `minimize`, for the assets or for variables of these groups."""
        labels = (self.group if group is None else group).tolist()
        return labels, {place: said for place, said in enumerate(self.limits.values()) if place in labels}

    def on(self, shown: Vector) -> Cardinalities:
        """The same for some of the assets; a group that must have names and has no asset is not met."""
        for place, (name, (least, _)) in enumerate(self.limits.items()):
            if least and not (self.group[shown] == place).any():
                raise InfeasibleError(
                    f"{ARGUMENT} asks for at least {least} of {name!r}, of which no asset can be used"
                )
        return replace(self, group=self.group[shown])

    @property
    def asking(self) -> bool:
        """Whether some group must have names."""
        return any(least for least, _ in self.limits.values())

    def require(self, k: int, inside: Vector, open_: Vector, floor: float) -> None:
        """`InfeasibleError` where no k names obey, of those that are open and with those that are inside; the message says which group."""
        needed = int(np.count_nonzero(self.group[inside] < 0))
        for place, (name, (least, most)) in enumerate(self.limits.items()):
            if least and floor == 0:
                raise ValueError(
                    f"{ARGUMENT} asks for at least {least} of {name!r}: say what it is to hold a name, by min_weight above 0"
                )
            held, usable = (int(np.count_nonzero(self.group[which] == place)) for which in (inside, open_))
            if most is not None and held > most:
                raise InfeasibleError(
                    f"{ARGUMENT} allows {most} of {name!r}, of which {held} are held whatever else is"
                )
            if usable < least:
                raise InfeasibleError(
                    f"{ARGUMENT} asks for at least {least} of {name!r}, of which {usable} can be used"
                )
            needed += max(held, least)
        if needed > k:
            raise InfeasibleError(
                f"{ARGUMENT} and the names that are held whatever else is make {needed} names, more than k = {k}"
            )

    def obeyed(self, x: Vector) -> bool:
        """Whether weights keep to it."""
        held = np.bincount(self.group[x != 0] + 1, minlength=len(self.limits) + 1)[1:]
        return all(
            least <= count <= (count if most is None else most)
            for count, (least, most) in zip(held, self.limits.values(), strict=True)
        )


def _limits(name: Any, said: Any) -> tuple[int, int | None]:
    if isinstance(said, tuple | list):
        if len(said) != 2:
            raise ValueError(f"{ARGUMENT} must give {name!r} the most, or (least, most), got {said!r}")
        least = check_integer(said[0], f"the least of {ARGUMENT} for {name!r}", 0)
        most = None if said[1] is None else check_integer(said[1], f"the most of {ARGUMENT} for {name!r}", 0)
        if most is not None and least > most:
            raise ValueError(f"{ARGUMENT} asks for at least {least} and at most {most} of {name!r}")
        return least, most
    return 0, check_integer(said, f"{ARGUMENT} for {name!r}", 0)


def mandate(
    universe: Universe,
    *,
    min_weights: Any = None,
    max_weights: Any = None,
    groups: Any = None,
    group_caps: Any = None,
    group_floors: Any = None,
    group_cardinalities: Any = None,
    linear_constraints: Any = None,
    forced_in: Any = None,
    forced_out: Any = None,
    previous_weights: Any = None,
    turnover_cost: Any = 0.0,
    max_turnover: float | None = None,
) -> dict[str, Any]:
    """Keyword arguments of `portfolio` from bounds and costs by name, groups with their limits, sentences and names."""
    n, members = universe.n, universe.groups(groups)
    if members and all(limit is None for limit in (group_caps, group_floors, group_cardinalities, linear_constraints)):
        raise ValueError(
            "groups has no effect without group_caps, group_floors, group_cardinalities or linear_constraints"
        )
    limits = group_limits(n, members, group_caps, "group_caps", 1.0) + group_limits(
        n, members, group_floors, "group_floors", -1.0
    )
    costs = universe.numbers(turnover_cost, "turnover_cost", 0.0)
    if not (np.isfinite(costs).all() and costs.min(initial=0.0) >= 0):
        raise ValueError(f"turnover_cost must be >= 0 and finite, got {turnover_cost!r}")
    if max_turnover is not None:
        check_number(max_turnover, "max_turnover", at_least=0)
    if previous_weights is None:
        for asked, name in ((costs.any(), "turnover_cost"), (max_turnover is not None, "max_turnover")):
            if asked:
                raise ValueError(f"{name} needs previous_weights to trade from")
    held = None if previous_weights is None else universe.numbers(previous_weights, "previous_weights", 0.0)
    if held is not None and not np.isfinite(held).all():
        raise ValueError(
            f"previous_weights must be finite, asset {int((~np.isfinite(held)).argmax())} has {held[~np.isfinite(held)][0]:g}"
        )
    return {
        "min_weights": None if min_weights is None else universe.numbers(min_weights, "min_weights", -np.inf),
        "max_weights": None if max_weights is None else universe.numbers(max_weights, "max_weights", np.inf),
        "rows": Rows.of(n, limits).and_(sentences(linear_constraints, universe, members)),
        "forced_in": () if forced_in is None else universe.members(forced_in, "forced_in"),
        "forced_out": () if forced_out is None else universe.members(forced_out, "forced_out"),
        "counts": Cardinalities.read(group_cardinalities, members, n),
        "held": held,
        "cost": costs,
        "max_turnover": max_turnover,
    }
