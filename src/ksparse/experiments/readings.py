"""What a table says, in one or two sentences computed from its rows, and which of the paper's sentences hold in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksparse.experiments.run import ROUNDED
from ksparse.result import Status

if TYPE_CHECKING:
    import pandas as pd

TIE = 1e-3  # relative: as close as the paper's three digits tell
Judge = Callable[["pd.DataFrame"], bool]  # of the rows of one instance, indexed by method


@dataclass(frozen=True)
class Claim:
    """A sentence and the instances on which it holds."""

    sentence: str
    holds: tuple[str, ...]
    fails: tuple[str, ...]

    def __str__(self) -> str:
        total = len(self.holds) + len(self.fails)
        where = f" (not on {'; '.join(self.fails)})" if self.fails else ""
        return f"{self.sentence}: holds on {len(self.holds)} of {total} instances{where}."


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row per instance, seed and method: medians of the times over repetitions, the rest of the first."""
    keys = ["instance", "seed", "method"]
    rows = table.drop_duplicates(keys).copy()
    for column in ("time", "time_all", "time_lipschitz"):
        medians = table.groupby(keys)[column].median()
        rows[column] = [medians.get(tuple(key), float("nan")) for key in rows[keys].itertuples(index=False)]
    return rows


def _less(first: str, second: str, column: str) -> Judge:
    return lambda rows: bool(rows[column][first] < rows[column][second])


def _best(method: str) -> Judge:
    return lambda rows: bool(rows["objective"][method] <= rows["objective"].min() + TIE * abs(rows["objective"].min()))


def _l2_faster(rows: pd.DataFrame) -> bool:
    return bool(
        max(rows["time"]["l2-PDCA"], rows["time"]["l2-APDCA"]) < min(rows["time"]["l1-DCA"], rows["time"]["MIP-DCA"])
    )


def _auto_best(rows: pd.DataFrame) -> bool:
    least = rows["objective"].min()
    return bool(rows["objective"]["auto"] <= least + 1e-9 * abs(least))


_L2 = ("The l2 methods are faster than l1-DCA and MIP-DCA", ("l2-PDCA", "l2-APDCA", "l1-DCA", "MIP-DCA"), _l2_faster)
_AUTO = ("auto has the best objective", ("l2-PDCA", "l2-APDCA", "l1-DCA", "MIP-DCA", "auto"), _auto_best)
CLAIMS: dict[str, list[tuple[str, tuple[str, ...], Judge]]] = {
    "table2": [
        (
            "APDCA with fixed step needs fewer iterations than pDCAe",
            ("APDCA fix", "pDCAe"),
            _less("APDCA fix", "pDCAe", "iterations"),
        ),
        (
            "APDCA with backtracking needs fewer iterations than pDCAe",
            ("APDCA bt", "pDCAe"),
            _less("APDCA bt", "pDCAe", "iterations"),
        ),
        ("pDCAe has the best F, to three digits", ("APDCA fix", "APDCA bt", "pDCAe"), _best("pDCAe")),
    ],
    "table3": [_L2, _AUTO],
    "table4": [
        (
            "l2-APDCA needs fewer iterations than l2-PDCA",
            ("l2-PDCA", "l2-APDCA"),
            _less("l2-APDCA", "l2-PDCA", "iterations"),
        ),
        _L2,
        _AUTO,
    ],
    "table5": [_L2, _AUTO],
    "demo": [_AUTO],
}


def _finished(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that can be compared: those that came out, and were not cut off by the limit."""
    return table[table["objective"].notna() & (table["status"] != Status.TIME_LIMIT.name)]


def claims(name: str, table: pd.DataFrame) -> list[Claim]:
    """The paper's sentences about a table (and ours about auto), each with the instances on which it can be judged."""
    found = []
    solved = _finished(summary(table))
    for sentence, needed, judge in CLAIMS.get(name, []):
        holds: list[str] = []
        fails: list[str] = []
        for (instance, seed), group in solved.groupby(["instance", "seed"], sort=False):
            rows = group.set_index("method")
            if set(needed) <= set(rows.index):
                several = solved.loc[solved["instance"] == instance, "seed"].nunique() > 1
                (holds if judge(rows.loc[list(needed)]) else fails).append(
                    f"{instance}, seed {seed}" if several else str(instance)
                )
        if holds or fails:
            found.append(Claim(sentence, tuple(holds), tuple(fails)))
    return found


def reading(name: str, table: pd.DataFrame, time: str = "time") -> str:
    """Which method is fastest and which is best, as the run says; ties count for each."""
    rows = table if name == "pitprops" else summary(table)
    solved = _finished(rows)
    if solved.empty:
        return "No row can be compared; the notes say why."
    if name == "pitprops":
        return _reading_of_starts(solved)
    groups = solved.groupby(["instance", "seed"], sort=False)
    said = f"Fastest: {_winners(solved, time, groups.ngroups)}. Best objective: {_winners(solved, 'objective', groups.ngroups)}."
    cut = int((rows["status"] == Status.TIME_LIMIT.name).sum())
    return said if not cut else f"{said} Not compared: {cut} row{'s' if cut > 1 else ''} cut off by the limit."


def _winners(solved: pd.DataFrame, column: str, total: int) -> str:
    least = solved.groupby(["instance", "seed"])[column].transform("min")
    ahead = solved.loc[solved[column] <= least + 1e-9 * least.abs(), "method"]
    return ", ".join(f"{method} on {times} of {total}" for method, times in Counter(ahead).most_common())


def _reading_of_starts(table: pd.DataFrame) -> str:
    optimum = float(table["objective"].min())
    parts = []
    for method, values in table.groupby("method", sort=False)["objective"]:
        reached = int((values <= optimum + TIE * abs(optimum)).sum())
        parts.append(f"{method} {reached} of {len(values)} (median {values.median():.3f}, worst {values.max():.3f})")
    rounded = table.loc[table["note"] == ROUNDED, "method"].value_counts(sort=False)
    after = "; ".join(f"{method} {times}" for method, times in rounded.items())
    said = f"Starts that reach the best value seen, {optimum:.4f}: " + "; ".join(parts) + "."
    return (
        said if not after else f"{said} Of these, rounded because the method itself gave more than k nonzeros: {after}."
    )
