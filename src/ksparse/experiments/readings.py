"""Summaries of a table in one or two sentences, and the claims of the paper that hold in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksparse.experiments.run import ROUNDED
from ksparse.result import Status

if TYPE_CHECKING:
    import pandas as pd

TIE = 1e-3  # relative difference that three printed digits can show
ROUNDING = 1e-9  # relative
KEYS = ["instance", "seed"]
Test = Callable[["pd.DataFrame"], bool]  # of the rows of one instance, indexed by method
ClaimTest = tuple[str, tuple[str, ...], Test]  # sentence, methods compared, test


@dataclass(frozen=True)
class Claim:
    """A sentence, and the instances on which it holds and fails."""

    sentence: str
    holds: tuple[str, ...]
    fails: tuple[str, ...]

    def __str__(self) -> str:
        total = len(self.holds) + len(self.fails)
        where = f" (not on {'; '.join(self.fails)})" if self.fails else ""
        return f"{self.sentence}: holds on {len(self.holds)} of {total} instances{where}."


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per instance, seed and method: median times, all else from the first repetition."""
    keys = [*KEYS, "method"]
    medians = table.groupby(keys)[["time", "time_all", "time_lipschitz"]].transform("median")
    return table.assign(**medians).drop_duplicates(keys)


def is_best(table: pd.DataFrame, column: str = "objective") -> pd.Series:
    """Return for each row whether it has the smallest value of its instance, up to rounding."""
    least = table.groupby(KEYS)[column].transform("min")
    return table[column] <= least + ROUNDING * least.abs()


def _fewer_iterations(name: str, first: str, second: str) -> ClaimTest:
    """Return the claim that the first method, called `name` in the sentence, needs fewer iterations than the second."""
    sentence = f"{name} needs fewer iterations than {second}"
    return sentence, (first, second), lambda rows: bool(rows["iterations"][first] < rows["iterations"][second])


def _best(method: str, tie: float) -> Test:
    def test(rows: pd.DataFrame) -> bool:
        least = rows["objective"].min()
        return bool(rows["objective"][method] <= least + tie * abs(least))

    return test


def _l2_faster(rows: pd.DataFrame) -> bool:
    return bool(rows["time"][["l2-PDCA", "l2-APDCA"]].max() < rows["time"][["l1-DCA", "MIP-DCA"]].min())


_FOUR = ("l2-PDCA", "l2-APDCA", "l1-DCA", "MIP-DCA")
_L2 = ("The l2 methods are faster than l1-DCA and MIP-DCA", _FOUR, _l2_faster)
_AUTO = ("auto has the best objective", (*_FOUR, "auto"), _best("auto", ROUNDING))
CLAIMS: dict[str, list[ClaimTest]] = {
    "table2": [
        _fewer_iterations("APDCA with fixed step", "APDCA fix", "pDCAe"),
        _fewer_iterations("APDCA with backtracking", "APDCA bt", "pDCAe"),
        ("pDCAe has the best F, to three digits", ("APDCA fix", "APDCA bt", "pDCAe"), _best("pDCAe", TIE)),
    ],
    "table3": [_L2, _AUTO],
    "table4": [_fewer_iterations("l2-APDCA", "l2-APDCA", "l2-PDCA"), _L2, _AUTO],
    "table5": [_L2, _AUTO],
    "demo": [_AUTO],
}


def _comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a result that the time limit did not stop."""
    return table[table["objective"].notna() & (table["status"] != Status.TIME_LIMIT.name)]


def claims(name: str, table: pd.DataFrame) -> list[Claim]:
    """Return the claims about a table, with the instances that have all rows needed for the comparison."""
    found = []
    solved = _comparable(summary(table))
    seeds = solved.groupby("instance")["seed"].nunique()
    for sentence, needed, test in CLAIMS.get(name, []):
        where: dict[bool, list[str]] = {True: [], False: []}
        for (instance, seed), group in solved.groupby(KEYS, sort=False):
            rows = group.set_index("method")
            if set(needed) <= set(rows.index):
                label = f"{instance}, seed {seed}" if seeds[instance] > 1 else str(instance)
                where[test(rows.loc[list(needed)])].append(label)
        if where[True] or where[False]:
            found.append(Claim(sentence, tuple(where[True]), tuple(where[False])))
    return found


def reading(name: str, table: pd.DataFrame, time: str = "time") -> str:
    """Return which methods are fastest and best; ties count for each method."""
    rows = table if name == "pitprops" else summary(table)
    solved = _comparable(rows)
    if solved.empty:
        return "No row can be compared; see the notes."
    if name == "pitprops":
        return _reading_of_starts(solved)
    total, winners = solved.groupby(KEYS).ngroups, []
    for column in (time, "objective"):
        counts = Counter(solved.loc[is_best(solved, column), "method"]).most_common()
        winners.append(", ".join(f"{method} on {times} of {total}" for method, times in counts))
    text = f"Fastest: {winners[0]}. Best objective: {winners[1]}."
    cut = int((rows["status"] == Status.TIME_LIMIT.name).sum())
    return f"{text} Not compared: {cut} row{'s' if cut > 1 else ''} stopped by the time limit." if cut else text


def _reading_of_starts(table: pd.DataFrame) -> str:
    best = float(table["objective"].min())
    parts = []
    for method, values in table.groupby("method", sort=False)["objective"]:
        reached = int((values <= best + TIE * abs(best)).sum())
        parts.append(f"{method} {reached} of {len(values)} (median {values.median():.3f}, worst {values.max():.3f})")
    rounded = table.loc[table["note"] == ROUNDED, "method"].value_counts(sort=False)
    text = f"Starts that reach the best known value {best:.4f}: {'; '.join(parts)}."
    if not len(rounded):
        return text
    counts = "; ".join(f"{method} {times}" for method, times in rounded.items())
    what = "Runs, of all starts, whose point was rounded because the method itself gave more than k nonzeros"
    return f"{text} {what}: {counts}."
