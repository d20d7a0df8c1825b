"""Rules about weights as users write them: bounds by name, groups, limits per group and linear constraints as strings.

`portfolio_arguments` reads all of them for `problem.portfolio`; the estimators and the command line call it.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer, check_number

COUNTS = "group_cardinalities"  # the parameter that errors name
TOKENS = (
    r"""\s*(?:(?P<quoted>'[^']*'|"[^"]*")|(?P<comparison><=|>=|==|=|<|>)"""
    r"""|(?P<number>(?>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)%?)"""
    r"""|(?P<name>{names})(?!\w)|(?P<sign>[-+*])|(?P<unknown>[^\s+*<>=]+|.))"""
)
Pairs = Sequence[tuple[Vector, float]]  # rows, each with its right-hand side


@dataclass(frozen=True)
class LinearRules:
    """Linear rules Gx ≤ h and Ex = f."""

    G: Vector
    h: Vector
    E: Vector
    f: Vector

    @classmethod
    def of(cls, n: int, inequalities: Pairs = (), equations: Pairs = ()) -> LinearRules:
        """Return the rules of rows with their right-hand sides."""
        G, E = (np.array([row for row, _ in pairs], dtype=float).reshape(-1, n) for pairs in (inequalities, equations))
        h, f = (np.array([right for _, right in pairs], dtype=float) for pairs in (inequalities, equations))
        return cls(G, h, E, f)

    def and_(self, other: LinearRules) -> LinearRules:
        """Return both sets of rules."""
        G, E = np.vstack([self.G, other.G]), np.vstack([self.E, other.E])
        return LinearRules(G, np.append(self.h, other.h), E, np.append(self.f, other.f))

    def on(self, assets: Vector) -> LinearRules:
        """Return the rules for portfolios of these assets only."""
        return replace(self, G=self.G[:, assets], E=self.E[:, assets])


@dataclass(frozen=True)
class Universe:
    """The assets: their number, and their names if they have any."""

    n: int
    names: Sequence[Any] | None = None

    def place(self, asset: Any, argument: str) -> int:
        """Return the index of an asset given by name or number."""
        if self.names is not None and asset in (known := list(self.names)):
            return known.index(asset)
        if isinstance(asset, numbers.Integral) and not isinstance(asset, bool | np.bool_):
            if not 0 <= int(asset) < self.n:
                raise ValueError(f"{argument} must name assets by 0..{self.n - 1}, got {asset}")
            return int(asset)
        hint = "" if self.names is not None else ": X has no column names"
        raise ValueError(f"{argument} names {asset!r}, which is not an asset{hint}")

    def numbers(self, given: Any, argument: str, default: float) -> Vector:
        """Return one number per asset from one for all, an array, or a mapping or Series by name with a default."""
        if hasattr(given, "to_dict") and self.names is not None:  # a Series counts by name, not by position
            given = given.to_dict()
        if given is None or isinstance(given, Mapping):
            out = np.full(self.n, default)
            for asset, value in (given or {}).items():
                out[self.place(asset, argument)] = self._number(value, argument)
            return out
        if np.ndim(given) == 0:
            return np.full(self.n, self._number(given, argument))
        try:
            out = np.array(given, dtype=float)
        except (TypeError, ValueError):
            forms = "a number, one per asset, or a mapping from name to number"
            raise TypeError(f"{argument} must be {forms}, got {given!r}") from None
        if out.shape != (self.n,):
            raise ValueError(f"{argument} must hold one number per asset, {self.n}, got shape {out.shape}")
        if np.isnan(out).any():
            raise ValueError(f"{argument} must not hold NaN, asset {int(np.isnan(out).argmax())} has one")
        return out

    @staticmethod
    def _number(value: Any, argument: str) -> float:
        """Return a number that may be infinite, as bounds may."""
        infinite = isinstance(value, numbers.Real) and math.isinf(float(value))
        return float(value) if infinite else check_number(value, argument)

    def groups(self, given: Any) -> dict[Any, Vector]:
        """Return the assets of each group from a label per asset, or a mapping from group to names, indices or mask."""
        if given is None:
            return {}
        if hasattr(given, "to_dict") and self.names is not None:
            known = given.to_dict()
            unlabelled = [name for name in self.names if name not in known]
            if unlabelled:
                raise ValueError(f"groups must hold a label for every asset, {unlabelled[0]!r} has none")
            given = [known[name] for name in self.names]
        if isinstance(given, Mapping):
            return {group: self.members(assets, "groups") for group, assets in given.items()}
        labels = list(given)
        if len(labels) != self.n:
            raise ValueError(f"groups must hold one label per asset, {self.n}, got {len(labels)}")
        distinct = dict.fromkeys(labels)
        return {group: np.array([i for i, label in enumerate(labels) if label == group]) for group in distinct}

    def members(self, given: Any, argument: str) -> Vector:
        """Return the indices of assets given by names, indices or a mask."""
        entries = [given] if isinstance(given, str) or np.ndim(given) == 0 else list(given)
        if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
            if len(entries) != self.n:
                raise ValueError(f"{argument} as a mask must have one entry per asset, {self.n}, got {len(entries)}")
            return np.flatnonzero(entries)
        return np.array(sorted({self.place(entry, argument) for entry in entries}), dtype=np.intp)


@dataclass(frozen=True)
class AssetCountLimits:
    """The minimum and maximum number of assets held of some groups, which share no asset."""

    group: Vector  # of each asset, as a number; −1 if its group has no limits
    limits: dict[Any, tuple[int, int | None]]  # (minimum, maximum or None) of group 0, 1, …, by name

    @classmethod
    def read(cls, given: Any, members: Mapping[Any, Vector], n: int) -> AssetCountLimits:
        """Return the limits from one number for all groups or a mapping from group to maximum or (minimum, maximum)."""
        group, limits = np.full(n, -1, dtype=np.intp), {}
        for place, (name, limit) in enumerate(_by_group(given, members, COUNTS).items()):
            limits[name] = _count_limits(name, limit)
            shared = members[name][group[members[name]] >= 0]
            if shared.size:
                both = f"{list(limits)[group[shared[0]]]!r} and {name!r}, which share asset {shared[0]}"
                raise ValueError(f"{COUNTS} limits {both}: groups with limits must not overlap")
            group[members[name]] = place
        return cls(group, limits)

    def as_group_limits(self, group: Vector | None = None) -> Any:
        """Return `group_limits` of `minimize` for the assets, or for variables of these groups; None without limits."""
        if not self.limits:
            return None
        labels = (self.group if group is None else group).tolist()
        return labels, {place: limit for place, limit in enumerate(self.limits.values()) if place in labels}

    def on(self, assets: Vector) -> AssetCountLimits:
        """Return the limits for some of the assets."""
        return replace(self, group=self.group[assets])

    def check_feasible(self, k: int, forced: Vector, allowed: Vector, min_weight: float) -> None:
        """Raise InfeasibleError, naming the group, if no k allowed assets with all forced ones satisfy the limits."""
        needed = int(np.count_nonzero(self.group[forced] < 0))
        for place, (name, (least, most)) in enumerate(self.limits.items()):
            if least and min_weight == 0:
                minimum = f"{COUNTS}: a minimum count (here {least} for {name!r})"
                raise ValueError(f"{minimum} requires min_weight > 0, which defines when an asset counts as held")
            held, usable = (int(np.count_nonzero(self.group[which] == place)) for which in (forced, allowed))
            if most is not None and held > most:
                forced_by = "forced in (forced_in or min_weights > 0)"
                raise InfeasibleError(f"{COUNTS} allows at most {most} of {name!r}, but {held} are {forced_by}")
            if usable < least:
                raise InfeasibleError(f"{COUNTS} requires at least {least} of {name!r}, of which {usable} can be used")
            needed += max(held, least)
        if self.limits and needed > k:
            needs = f"forced-in assets and minimum counts in {COUNTS} need {needed} assets"
            raise InfeasibleError(f"{needs}, more than k = {k}")

    def is_satisfied(self, x: Vector) -> bool:
        """Return whether weights satisfy the limits."""
        held = np.bincount(self.group[x != 0] + 1, minlength=len(self.limits) + 1)[1:]
        limits = zip(held, self.limits.values(), strict=True)
        return all(least <= count <= (count if most is None else most) for count, (least, most) in limits)


def _count_limits(name: Any, given: Any) -> tuple[int, int | None]:
    """Return (minimum, maximum) of a group."""
    if not isinstance(given, tuple | list):
        return 0, check_integer(given, f"{COUNTS} for {name!r}", 0)
    if len(given) != 2:
        raise ValueError(f"{COUNTS} must give {name!r} the most, or (least, most), got {given!r}")
    least = check_integer(given[0], f"the least of {COUNTS} for {name!r}", 0)
    most = None if given[1] is None else check_integer(given[1], f"the most of {COUNTS} for {name!r}", 0)
    if most is not None and least > most:
        raise ValueError(f"{COUNTS} requires at least {least} and at most {most} of {name!r}")
    return least, most


def portfolio_arguments(
    universe: Universe, *,
    min_weights: Any = None, max_weights: Any = None, groups: Any = None, group_caps: Any = None,
    group_floors: Any = None, group_cardinalities: Any = None, linear_constraints: Any = None, forced_in: Any = None,
    forced_out: Any = None, previous_weights: Any = None, turnover_cost: Any = 0.0, max_turnover: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the keyword arguments of `portfolio` for rules as users write them."""
    n, members = universe.n, universe.groups(groups)
    if members and all(rule is None for rule in (group_caps, group_floors, group_cardinalities, linear_constraints)):
        others = "group_caps, group_floors, group_cardinalities or linear_constraints"
        raise ValueError(f"groups has no effect without {others}")
    caps = _group_rows(n, members, group_caps, "group_caps", 1.0)
    floors = _group_rows(n, members, group_floors, "group_floors", -1.0)
    cost = universe.numbers(turnover_cost, "turnover_cost", 0.0)
    wrong = ~(np.isfinite(cost) & (cost >= 0))
    if wrong.any():
        raise ValueError(f"turnover_cost must be >= 0 and finite, got {cost[wrong][0]:g}")
    if max_turnover is not None:
        check_number(max_turnover, "max_turnover", at_least=0)
    held = None if previous_weights is None else universe.numbers(previous_weights, "previous_weights", 0.0)
    if held is None:
        for needs, name in ((cost.any(), "turnover_cost"), (max_turnover is not None, "max_turnover")):
            if needs:
                raise ValueError(f"{name} needs previous_weights to trade from")
    elif not np.isfinite(held).all():
        i = int((~np.isfinite(held)).argmax())
        raise ValueError(f"previous_weights must be finite, asset {i} has {held[i]:g}")
    return {
        "min_weights": universe.numbers(min_weights, "min_weights", -np.inf),
        "max_weights": universe.numbers(max_weights, "max_weights", np.inf),
        "rows": LinearRules.of(n, [*caps, *floors]).and_(parse_constraints(linear_constraints, universe, members)),
        "forced_in": () if forced_in is None else universe.members(forced_in, "forced_in"),
        "forced_out": () if forced_out is None else universe.members(forced_out, "forced_out"),
        "counts": AssetCountLimits.read(group_cardinalities, members, n),
        "held": held,
        "cost": cost,
        "max_turnover": max_turnover,
    }


def _by_group(given: Any, members: Mapping[Any, Vector], argument: str) -> Mapping[Any, Any]:
    """Return a mapping from group, given as that, as one number for all groups, or as None."""
    if given is None:
        return {}
    if not members:
        raise ValueError(f"{argument} requires groups")
    if isinstance(given, numbers.Real) and not isinstance(given, bool):
        given = dict.fromkeys(members, given)
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must be one number or a mapping from group to number, got {type(given).__name__}")
    for group in given:
        if group not in members:
            raise ValueError(f"{argument} names {group!r}, which is not among the groups")
    return given


def _group_rows(n: int, members: Mapping[Any, Vector], given: Any, argument: str, sign: float) -> Pairs:
    """Return the rows of upper (sign 1) or lower (−1) limits on the weights of groups."""
    return [
        (np.where(np.isin(np.arange(n), members[group]), sign, 0.0), sign * check_number(limit, argument))
        for group, limit in _by_group(given, members, argument).items()
    ]


def parse_constraints(given: Any, universe: Universe, members: Mapping[Any, Vector]) -> LinearRules:
    """Return the rules of strings such as "tech <= 0.3", "2*AAPL + MSFT >= 0.1", "0.1 <= tech <= 0.4", "AAPL == MSFT".

    Names are those of assets, and of groups, for the sum of their assets; those that look like numbers need quotes.
    """
    if given is None:
        return LinearRules.of(universe.n)
    inequalities, equations = list[tuple[Vector, float]](), list[tuple[Vector, float]]()
    known = _meanings(universe, members)
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True) if name)  # the longest is read
    tokens = re.compile(TOKENS.format(names=names or "(?!)"), re.DOTALL)
    for text in [given] if isinstance(given, str) else given:
        if not isinstance(text, str):
            raise TypeError(f"linear_constraints must hold strings such as 'tech <= 0.3', got {text!r}")
        sides, comparisons = _sides(text, tokens, known)
        sums = [_linear_sum(side, universe.n, known, text) for side in sides]
        for left, comparison, right in zip(sums, comparisons, sums[1:], strict=False):
            *row, constant = left - right
            if not np.any(row):
                hint = "(a name that looks like a number needs quotes)"
                raise ValueError(f"linear_constraints: {text!r} contains no asset {hint}")
            if comparison in ("=", "=="):
                equations.append((np.array(row), -constant))
            else:
                sign = 1.0 if comparison in ("<=", "<") else -1.0
                inequalities.append((sign * np.array(row), -sign * constant))
    return LinearRules.of(universe.n, inequalities, equations)


def _meanings(universe: Universe, members: Mapping[Any, Vector]) -> dict[str, Vector]:
    """Return the assets that each name stands for."""
    assets = universe.names if universe.names is not None else [f"x{i}" for i in range(universe.n)]
    known = {str(asset): np.array([i]) for i, asset in enumerate(assets)}
    for group, inside in members.items():
        if str(group) in known:
            name = f"groups has a group {group!r} that is the name of an asset"
            raise ValueError(f"{name}: linear_constraints could mean either")
        known[str(group)] = inside
    return known


Token = tuple[str, Any]  # ("name", …), ("number", …) or ("sign", …)


def _sides(text: str, tokens: re.Pattern[str], known: Mapping[str, Vector]) -> tuple[list[list[Token]], list[str]]:
    """Return the sides of a constraint as tokens, and the comparisons between them."""
    sides, comparisons = [list[Token]()], list[str]()
    for match in tokens.finditer(text.strip()):
        kind, token = str(match.lastgroup), match.group(str(match.lastgroup))
        if kind == "comparison":
            comparisons.append(token)
            sides.append([])
        elif kind == "sign":
            sides[-1].append((kind, token))
        elif kind == "number":
            number = token.removesuffix("%")
            if number in known:
                hint = f"put the name in quotes, or write the number otherwise, as in {_other_spelling(number, known)}"
                raise ValueError(f"linear_constraints: {number!r} in {text!r} is a number and a name: {hint}")
            sides[-1].append((kind, float(number) / (100.0 if token.endswith("%") else 1.0)))
        else:
            name = token[1:-1] if kind == "quoted" else token
            if name not in known:
                raise ValueError(f"linear_constraints: {name!r} in {text!r} is neither an asset nor a group")
            sides[-1].append(("name", name))
    if not comparisons:
        raise ValueError(f"linear_constraints: {text!r} has no <=, >= or ==")
    if not all(sides):
        raise ValueError(f"linear_constraints: {text!r} has nothing on one side of {comparisons[0]}")
    return sides, comparisons


def _other_spelling(number: str, known: Mapping[str, Vector]) -> str:
    """Return the number in digits that are no name."""
    digits = repr(float(number)) if "e" not in repr(float(number)) else f"{float(number):.1f}"
    while digits in known:
        digits += "0"
    return digits


def _linear_sum(side: list[Token], n: int, known: Mapping[str, Vector], text: str) -> Vector:
    """Return the coefficients of a sum, with its constant as the last entry."""
    row, sign, coefficient, name = np.zeros(n + 1), 1.0, 1.0, None
    last = "+"  # the last sign, or "" after a factor
    for kind, token in [*side, ("end", "")]:
        if kind in ("number", "name"):
            # "2 AAPL" may leave the * out; two names, or two numbers, side by side may not
            if not last and not (kind == "name" and name is None):
                raise ValueError(f"linear_constraints: {text!r} lacks + or * before {token!r}")
            if kind == "number":
                coefficient *= token
            elif name is None:
                name = token
            else:
                hint = "only sums with coefficients are linear"
                raise ValueError(f"linear_constraints: {text!r} multiplies {name!r} by {token!r}: {hint}")
            last = ""
        elif kind == "end" and last:
            raise ValueError(f"linear_constraints: {text!r} ends where a name or a number is needed")
        elif token == "*":
            if last:
                raise ValueError(f"linear_constraints: {text!r} has a * with nothing before it")
            last = "*"
        elif last == "*":
            raise ValueError(f"linear_constraints: {text!r} has a {token} after *")
        else:
            if not last:
                row[n if name is None else known[name]] += sign * coefficient
                sign, coefficient, name = 1.0, 1.0, None
            sign, last = -sign if token == "-" else sign, token
    return row
