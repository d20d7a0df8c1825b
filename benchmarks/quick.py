"""The quickest answer: `effort=0`, little more than a greedy fill and a descent, beside abess on the same thread.

    python benchmarks/quick.py

CPU time is the shortest of five solves of each, by turns. Values are recomputed from the raw data. Of Table 5, seeds 3
to 8 are instances on which nothing was chosen.
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from suite.contenders.abess_ import Abess
from suite.contenders.ours import OURS, Ours
from suite.judge import judge
from suite.problem import Problem
from suite.problems import build

SOLVES = 5
AS_GOOD = 1e-9  # relative difference of values that counts as equal
GROUPS = {
    **{f"Table 5, i = {i}": [("knob", f"i = {i}, seed {seed}") for seed in range(3, 9)] for i in range(1, 6)},
    "planted subset": [("best_subset", "signs free")],
    "logistic, planted": [("logistic", "planted")],
    "logistic, genes, k = 5": [("knob", f"genes {seed}, k = 5") for seed in range(5)],
    "logistic, genes, k = 10": [("knob", f"genes {seed}, k = 10") for seed in range(5)],
}


def compare(problem: Problem) -> tuple[float, float, float]:
    """Return the value relative to abess, the CPU time relative to abess, and our CPU time."""
    contenders = (Ours(f"{OURS}, effort 0", {"effort": 0}), Abess())
    times, values = np.full((2, SOLVES), np.inf), np.empty(2)
    for turn in range(SOLVES):
        for place, contender in enumerate(contenders):
            began = time.process_time()
            answer = contender.solve(problem, np.inf)
            times[place, turn] = time.process_time() - began
            values[place] = judge(problem, answer.x).objective
    ours, theirs = times.min(axis=1)
    return float(values[0] / values[1]), float(ours / theirs), float(ours)


def main() -> None:
    print(f"{'instances':<26}{'value / abess':>14}{'as good':>9}{'time / abess':>14}{'time (s)':>10}")
    everything = []
    for name, instances in GROUPS.items():
        rows = np.array([compare(build(*instance)) for instance in instances])
        everything.append(rows)
        print(line(name, rows), flush=True)
    print(line("all", np.concatenate(everything)))


def line(name: str, rows: np.ndarray) -> str:
    """Return the means of a group; times by the geometric mean."""
    good = f"{int((rows[:, 0] <= 1 + AS_GOOD).sum())}/{len(rows)}"
    ratio, seconds = np.exp(np.log(rows[:, 1:]).mean(axis=0))
    return f"{name:<26}{rows[:, 0].mean():>14.4f}{good:>9}{ratio:>14.2f}{seconds:>10.4f}"


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
