"""Claims about ksparse, computed from the rows of a run: each claim with its ratio, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from suite.contenders import OURS, PROOF
from suite.contenders.base import BUDGETS
from suite.row import Row, best_of, problems_of

ROUNDING = 1e-9  # two answers on one support differ by this much at most
GIB = 1024.0


@dataclass(frozen=True)
class Claim:
    """A ratio and its bound. `holds` is None if the claim cannot be judged, for the reason `why`."""

    group: str
    problem: str
    sentence: str
    ratio: float
    bound: float
    holds: bool | None
    why: str = ""


Rows = dict[str, Row]  # of one problem, by contender
Rule = Callable[[Rows], list[Claim]]


def claims(rows: list[Row]) -> list[Claim]:
    """Return every claim on every problem that ksparse solved."""
    found = []
    for (group, _), several in problems_of(rows).items():
        by_name = {row.contender: row for row in several}
        if OURS in by_name or PROOF in by_name:
            found += [claim for rule in RULES.get(group, ()) for claim in rule(by_name)]
    for group, rules in MEANS.items():
        several = [row for row in rows if row.group == group and not row.missing]
        found += [claim for rule in rules for claim in rule(several)]
    return found


def _claim(rows: Rows, sentence: str, ratio: float, bound: float, why: str = "", mine: str = OURS) -> Claim:
    ours = rows[mine]
    if not (ours.solved and ours.feasible):
        return Claim(ours.group, ours.problem, sentence, math.nan, bound, False, f"ours: {ours.reason or 'infeasible'}")
    holds = None if why and math.isnan(ratio) else ratio <= bound * (1 + ROUNDING)
    return Claim(ours.group, ours.problem, sentence, ratio, bound, holds, why)


def at_most(other: str, bound: float = 1.0, proved: bool = False, obeying: bool = False, mine: str = OURS) -> Rule:
    """Claim that our objective is at most `bound` times the other's.

    The other may break signs, which can only help it, but not the limit on nonzeros. With `obeying` the claim is made
    only where the other broke nothing; `mine` is another of our own rows.
    """
    words = f"objective at most {'' if bound == 1 else f'{bound:g} × '}that of {other}"

    def rule(rows: Rows) -> list[Claim]:
        theirs = rows.get(other)
        if (
            theirs is None
            or mine not in rows
            or (proved and not theirs.proved)
            or (obeying and theirs.solved and not theirs.feasible)
        ):
            return []
        if not theirs.solved:
            return [_claim(rows, words, math.nan, bound, f"{other}: {theirs.reason}", mine)]
        if theirs.kind != "penalised" and theirs.nonzeros > theirs.k:
            return [_claim(rows, words, math.nan, bound, f"{other}: {theirs.nonzeros} nonzeros", mine)]
        return [_claim(rows, words, _ratio(rows[mine].objective, theirs.objective), bound, mine=mine)]

    return rule


def _ratio(ours: float, theirs: float) -> float:
    """Return ours / theirs for positive values, theirs / ours for negative values: below 1 ours is better."""
    if theirs == ours:
        return 1.0
    over, under = (ours, theirs) if theirs > 0 else (theirs, ours)
    return over / under if under else math.inf


def bounded(mine: str) -> Rule:
    """Claim that our lower bound is not above the best answer of all contenders."""

    def rule(rows: Rows) -> list[Claim]:
        best = best_of(list(rows.values()))
        if mine not in rows or not math.isfinite(rows[mine].bound):
            return []
        return [
            _claim(
                rows, "the lower bound is below the best answer of all", _ratio(rows[mine].bound, best), 1.0, mine=mine
            )
        ]

    return rule


def within_gap(mine: str, gap: float) -> Rule:
    """Claim that our answer is proved to within a gap."""

    def rule(rows: Rows) -> list[Claim]:
        ours = rows.get(mine)
        if ours is None:
            return []
        proved = (ours.objective - ours.bound) / abs(ours.objective) if ours.solved and ours.objective else math.nan
        return [_claim(rows, f"proved to within {100 * gap:g} %", proved / gap, 1.0, mine=mine)]

    return rule


def faster(other: str, bound: float = 1.0, mine: str = OURS) -> Rule:
    """Claim that our median time is at most `bound` times the other's; a stopped run counts with the time limit."""
    words = f"time at most {'' if bound == 1 else f'1/{1 / bound:g} of '}that of {other}"

    def rule(rows: Rows) -> list[Claim]:
        theirs = rows.get(other)
        if theirs is None or mine not in rows:
            return []
        if theirs.seconds:
            return [_claim(rows, words, rows[mine].time / theirs.time, bound, mine=mine)]
        late = theirs.reason.startswith("not done")
        return [
            _claim(
                rows,
                words,
                rows[mine].time / theirs.limit if late else math.nan,
                bound,
                f"{other}: {theirs.reason}",
                mine,
            )
        ]

    return rule


def everyone(make: Callable[..., Rule]) -> Rule:
    """Make a rule against every other contender."""
    return lambda rows: [claim for name in rows if not name.startswith(OURS) for claim in make(name)(rows)]


def within_memory(gib: float) -> Rule:
    """Claim that our process never held more memory."""
    return lambda rows: [_claim(rows, f"peak memory at most {gib:g} GiB", rows[OURS].peak / (gib * GIB), 1.0)]


def mean_within(share: float, mine: str, kind: str) -> Callable[[list[Row]], list[Claim]]:
    """Claim that `mine` is on average within a share of the best row, on the problems of one kind."""

    def rule(rows: list[Row]) -> list[Claim]:
        problems = [
            several
            for several in problems_of([row for row in rows if row.kind == kind]).values()
            if best_of(several) > 0
        ]
        ratios = [
            row.objective / best_of(several)
            for several in problems
            for row in several
            if row.contender == mine and row.feasible
        ]
        if not ratios:
            return []
        words, mean = f"{mine}: within {100 * share:g} % of the best on the average", sum(ratios) / len(ratios)
        return [Claim(rows[0].group, f"{len(ratios)} of {kind}", words, mean, 1 + share, mean <= 1 + share)]

    return rule


ABESS, WIDE, SCOPE = "abess", "abess, wide search", "skscope Scope"
SCIPS = ("SCIP", "SCIP, perspective", "skfolio with SCIP")
TABLE5 = [at_most(SCOPE), faster(SCOPE, 1 / 5), at_most(ABESS), at_most(WIDE, obeying=True)]
RULES: dict[str, list[Rule]] = {
    "table2": [at_most("paper pDCAe", 1.0005), faster("paper APDCA fix", 1 / 2)],
    "table5": TABLE5,
    "table5_others": TABLE5,
    "best_subset": [at_most(ABESS), at_most(WIDE), at_most(SCOPE), faster(ABESS, 1 / 5), faster(WIDE, 1 / 5)],
    "sparse_pca": [everyone(at_most), everyone(faster)],
    "portfolios": [rule for name in SCIPS for rule in (at_most(name, 1.001, proved=True), faster(name, 1 / 50))],
    "rows": [rule for name in SCIPS[:2] for rule in (at_most(name, 1.0001, proved=True), faster(name, 1 / 50))],
    "caps": [rule for name in SCIPS[:2] for rule in (at_most(name, 1.001, proved=True), faster(name, 1 / 50))],
    "proofs": [within_gap(PROOF, 1e-4), bounded(PROOF), faster(SCIPS[1], 1 / 100, PROOF)],
    "logistic": [at_most(ABESS), at_most(WIDE), at_most(SCOPE)],
    "effort": [
        at_most(f"{name}, {seconds:g} s", mine=f"{OURS}, {seconds:g} s")
        for seconds in BUDGETS
        for name in (ABESS, WIDE, SCOPE)
    ],
    "sparse_csr": [within_memory(3.0)],
}
SIXTEEN = f"{OURS}, effort 16"
MEANS: dict[str, list[Callable[[list[Row]], list[Claim]]]] = {
    "knob": [
        mean_within(0.02, OURS, "least squares"),
        mean_within(0.007, SIXTEEN, "least squares"),
        mean_within(0.05, OURS, "logistic"),
        mean_within(0.01, SIXTEEN, "logistic"),
    ],
}
