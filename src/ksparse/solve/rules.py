"""What the user says of allowed supports, checked: `groups`, `group_limits` and `requires` made into one set of rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.search.pieces import Pieces
from ksparse.search.support_rules import NoRules, Rules, closed_rows
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_indices, check_integer


def make_rules(groups: Any = None, group_limits: Any = None, requires: Any = None, *, n: int) -> Rules:
    """Return the rules that the arguments describe."""
    if groups is None and group_limits is None and requires is None:
        return NoRules.of(n)
    label, names, least, most = _limits(group_limits, n)
    weight, pairs, of = np.ones(n), list(_needs(requires, n)), None
    if groups is not None:
        given, of = _labels(groups, "groups", n)
        weight = np.zeros(n)
        for group in range(len(given)):
            members = np.flatnonzero(of == group)
            weight[members[0]] = 1.0
            pairs += [
                *pairwise(members.tolist()),
                (int(members[-1]), int(members[0])),
            ]  # round in a circle: each needs all others
            if np.unique(label[members]).size > 1:
                raise ValueError(
                    f"group_limits must give all variables of a group one label, those of group {given[group]!r} have several"
                )
    brings = closed_rows(n, pairs) if pairs else None
    return Rules(label, tuple(names), least, most, weight, brings, of)


def _labels(labels: Any, name: str, n: int) -> tuple[list[Any], Vector]:
    """The distinct labels, in the order of their first variables, and which of them each variable has."""
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must hold a label for each of the {n} variables, got {type(labels).__name__}")
    given = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(given) != n:
        raise ValueError(f"{name} must hold a label for each of the {n} variables, got {len(given)}")
    try:
        places = {label: place for place, label in enumerate(dict.fromkeys(given))}
    except TypeError as error:
        raise TypeError(f"{name} must hold labels such as names or numbers: {error}") from error
    return list(places), np.array([places[label] for label in given], dtype=np.intp)


def _limits(group_limits: Any, n: int) -> tuple[Vector, list[Any], Vector, Vector]:
    """Each variable's label as a number, the labels' names, and the least and the most of each; those without limits are the last one."""
    if group_limits is None:
        return np.zeros(n, dtype=np.intp), [None], np.zeros(1), np.full(1, float(n))
    shape = "group_limits must be (labels, {label: (least, most)})"
    if not isinstance(group_limits, tuple | list) or len(group_limits) != 2 or not isinstance(group_limits[1], Mapping):
        raise TypeError(f"{shape}, got {type(group_limits).__name__}")
    given, of = _labels(group_limits[0], "the labels of group_limits", n)
    names = list(group_limits[1])
    least, most = np.zeros(len(names) + 1), np.full(len(names) + 1, float(n))
    label = np.full(n, len(names), dtype=np.intp)
    for place, (name, limits) in enumerate(group_limits[1].items()):
        if name not in given:
            raise ValueError(f"group_limits has limits for label {name!r}, which no variable is labelled with")
        if not isinstance(limits, tuple | list) or len(limits) != 2:
            raise TypeError(f"{shape}, got {limits!r} for label {name!r}")
        least[place] = check_integer(limits[0], f"the least number of group_limits for label {name!r}", 0)
        if limits[1] is not None:
            most[place] = check_integer(limits[1], f"the most of group_limits for label {name!r}", 0)
        if least[place] > most[place]:
            raise ValueError(f"group_limits asks for at least {limits[0]} and at most {limits[1]} of label {name!r}")
        label[of == given.index(name)] = place
    return label, [*names, None], least, most


def _needs(requires: Any, n: int) -> Iterator[tuple[int, int]]:
    """Each child with each of its parents."""
    if requires is None:
        return
    if not isinstance(requires, Mapping):
        raise TypeError(f"requires must be {{child: parents}} in indices of variables, got {type(requires).__name__}")
    for child, parents in requires.items():
        check_integer(child, "a child of requires", 0, n - 1)
        listed = [parents] if isinstance(parents, Integral) else parents
        for parent in check_indices(listed, f"requires[{child}]"):
            yield int(child), check_integer(int(parent), f"a parent in requires[{child}]", 0, n - 1)


def require_obedient(pieces: Pieces, out: Vector, k: int) -> None:
    """`InfeasibleError` where no support of k obeys, saying who cannot be served; `MissingPieceError` for rules that are not known."""
    rules, forced, allowed = pieces.rules, pieces.forced, pieces.allowed
    faint = allowed & (pieces.floor == 0)
    if rules.brings is None:  # a member that is 0 is missed only where there must be some
        faint &= (rules.least > 0)[rules.label]
    if rules.strict and faint.any():
        raise MissingPieceError(
            "min_nonzero must be above 0 for all variables of labels with a least number in group_limits, or, with requires or groups, for "
            f"all; it is 0 for variable {np.flatnonzero(faint)[0]}"
        )
    _require_parents(rules, forced, allowed, out)
    what, inside = (
        "groups" if rules.grouped else "variables",
        np.bincount(rules.label[forced], rules.weight[forced], rules.least.size),
    )
    apart = (
        np.ones(rules.n)
        if rules.brings is None
        else rules.brings @ np.where(np.isin(np.arange(rules.n), forced), 0.0, rules.weight)
    )
    for place, name in enumerate(rules.names[:-1]):
        least, most, member = (
            int(rules.least[place]),
            int(rules.most[place]),
            (rules.label == place) & (rules.weight > 0),
        )
        if inside[place] > most:
            raise InfeasibleError(
                f"group_limits allows {most} of label {name!r}, and {inside[place]:g} {what} of it are forced in"
            )
        if least > k:
            raise InfeasibleError(f"group_limits asks for at least {least} of label {name!r}, more than k = {k}")
        open_ = int((member & allowed).sum())
        if open_ < least:
            raise InfeasibleError(
                f"group_limits asks for at least {least} of label {name!r}, of which {open_} {what} can be used"
            )
        alone = int((member & allowed & ((apart <= 1) | np.isin(np.arange(rules.n), forced))).sum())
        if alone < least:
            raise MissingPieceError(
                f"group_limits asks for at least {least} of label {name!r}, of which only {alone} {what} need no others by "
                "requires: a least number is known for labels that have as many"
            )
    needed = int(np.maximum(inside, rules.least).sum())
    if needed > k:
        asks = [
            f"{int(max(inside[p], rules.least[p]))} of label {name!r}"
            for p, name in enumerate(rules.names[:-1])
            if rules.least[p]
        ]
        listed = f" ({', '.join(asks)})" if asks else ""
        raise InfeasibleError(
            f"what is forced in and the least numbers of group_limits{listed} make {needed} {what}, more than k = {k}"
        )


def _require_parents(rules: Rules, forced: Vector, allowed: Vector, out: Vector) -> None:
    """That what is forced in may be there, with all that it needs."""
    barred = np.isin(forced, out) | ~allowed[forced]
    for i in forced[np.argsort(barred, kind="stable")]:  # who needs another first
        for needed in rules.closure(np.array([i])):
            if needed in out or not allowed[needed]:
                why = "is in forced_out" if needed in out else "cannot be used"
                by = "is in its group" if rules.grouped else "it requires"
                whom = f"variable {needed}, which {by}, {why}" if needed != i else f"it {why}"
                raise InfeasibleError(f"variable {i} is always in the support, but {whom}")
