"""Value and CPU time of every instance of the suite, recorded once and compared after every change.

    python benchmarks/answers.py --record [--older …] [FAMILY …]  # write benchmarks/answers.json
    python benchmarks/answers.py [FAMILY …]                       # compare the values with that file
    git worktree add ../older COMMIT
    python benchmarks/answers.py --older ../older/src [FAMILY …]  # compare values and CPU times with another version

Each version runs in its own process on one thread. The shortest CPU time of several solves counts, because other
programs only add to it. Times are compared within one run only: those in the file show the size of an instance.
Proofs use gap=1e-4.

A value may be at most 0.1 % worse on an instance and no worse in the mean of a family; a proof may not be lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from suite.problems import names

RECORD = Path(__file__).with_name("answers.json")
WORSE = 1e-3  # of the value: more is a failure
GAP = 1e-4
SUITE = ("table2", "table5", "best_subset", "sparse_pca", "portfolios", "rows", "caps", "logistic")
FAMILIES = (*SUITE, "genes", "proofs", "batches")
CHILD = """
import json, sys, time
import numpy as np
import ksparse as ks
from suite.contenders.ours import pieces
from suite.problems import build

def batch(seed):
    rng = np.random.default_rng(seed)
    A, X = rng.uniform(size=(100, 120)) + np.linspace(0, 3, 100)[:, None], np.zeros((120, 200))
    for column in X.T:
        column[rng.choice(120, 5, replace=False)] = rng.dirichlet(np.ones(5))
    return A, A @ X + 0.02 * rng.standard_normal((100, 200))

def solve(family, group, name):
    if family == "batches":
        A, B = batch(int(name))
        return lambda: ks.minimize_many(A, B, 5, ks.Nonnegative())
    problem = build(group, name)
    loss, C = pieces(problem)
    if problem.kind == "penalised":
        return lambda: ks.minimize_penalized(loss, ks.L1MinusL2(problem.lam), continuation=True, tol=1e-6)
    gap = {"gap": GAP, "max_time": 120.0} if family == "proofs" else {}
    return lambda: ks.minimize(loss, problem.k, C, min_nonzero=problem.floor, **gap)

GAP = float(sys.argv[1])
for line in sys.stdin:
    family, group, name, solves = json.loads(line)
    call, times = solve(family, group, name), []
    for _ in range(solves):
        before = time.process_time()
        found = call()
        times.append(time.process_time() - before)
    proved = bool(getattr(found, "gap", 1.0) <= GAP) if family == "proofs" else None
    print(json.dumps([float(np.sum(found.fun)), min(times), proved]), flush=True)
"""


def instances(family: str) -> list[tuple[str, str]]:
    """Return the (group, name) pairs of a family."""
    if family == "batches":
        return [("", str(seed)) for seed in range(3)]
    if family == "genes":
        return [("knob", name) for name in names("knob") if name.startswith("genes")]
    if family == "proofs":
        return [("proofs", name) for name in names("proofs") if name.startswith(("port1", "port2", "port3"))]
    return [(family, name) for name in names(family)]


class Version:
    """A process that solves instances with the library in one source folder."""

    def __init__(self, source: Path) -> None:
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        paths = {"PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).parent)])}
        command = [sys.executable, "-W", "ignore", "-c", CHILD, repr(GAP)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | threads | paths
        )

    def solve(self, family: str, group: str, name: str, solves: int) -> tuple[float, float, bool | None]:
        """Value, CPU seconds and, for a proof, whether the gap was reached."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([family, group, name, solves]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{family}, {name} failed")
        value, seconds, proved = json.loads(answer)
        return value, seconds, proved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}; default all")
    parser.add_argument(
        "--record", action="store_true", help="write benchmarks/answers.json instead of comparing with it"
    )
    parser.add_argument(
        "--older", type=Path, help="source folder of another version, to compare with instead of the file"
    )
    parser.add_argument(
        "--turns", type=int, default=2, help="of two solves each; with --older by turns of the two versions"
    )
    given = parser.parse_args()
    families = given.families or FAMILIES
    source = Path(__file__).parents[1] / "src"
    newer = Version(given.older.resolve() if given.older and given.record else source)
    older = Version(given.older.resolve()) if given.older and not given.record else None
    recorded: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    failed = False
    for family in families:
        rows: dict[str, list[Any]] = {}
        for group, name in instances(family):
            before = now = None
            solves = 1 if family == "proofs" else 2
            for _ in range(given.turns if older else 1):
                if older:
                    before = least(before, older.solve(family, group, name, solves))
                now = least(now, newer.solve(family, group, name, solves))
            if not older:
                before = recorded.get(family, {}).get(name)
            rows[name] = [before, now]
            print(line(family, name, before, now), flush=True)
        if given.record:
            recorded[family] = {name: [now[0], round(now[1], 4), now[2]] for name, (_, now) in rows.items()}
        elif any(before is not None for before, _ in rows.values()):
            failed |= summary(family, [row for row in rows.values() if row[0] is not None], older is not None)
    if given.record:
        RECORD.write_text(json.dumps(recorded, indent=1) + "\n")
    sys.exit(int(failed))


def least(one: Any, other: Any) -> Any:
    """Return the run with the shorter CPU time."""
    return other if one is None or other[1] < one[1] else one


def line(family: str, name: str, before: Any, now: Any) -> str:
    """Return the line of an instance, with the change of its value."""
    text = f"{family}, {name}: {now[0]:.9g} in {now[1]:.4f} s"
    if before is not None:
        text += f"; before {before[0]:.9g} in {before[1]:.4f} s ({100 * worse(before, now):+.4f} %)"
    return text + ("" if now[2] is None else ", proved" if now[2] else ", NOT PROVED")


def worse(before: Any, now: Any) -> float:
    """Return the fraction by which a value is worse."""
    return float((now[0] - before[0]) / max(abs(before[0]), 1e-300))


def summary(family: str, rows: list[list[Any]], timed: bool) -> bool:
    """Print the comparison of a family and return whether it fails."""
    changes = np.array([worse(before, now) for before, now in rows])
    lost = sum(bool(before[2]) and not now[2] for before, now in rows)
    text = f"== {family}: values {100 * changes.mean():+.4f} % in the mean, {100 * changes.max():+.4f} % at worst"
    if timed:
        ratios = np.array([now[1] / before[1] for before, now in rows])
        text += f"; CPU time {np.exp(np.log(ratios).mean()):.2f} in the mean, {ratios.max():.2f} at most"
    failed = bool(changes.max() > WORSE or changes.mean() > 1e-6 or lost)
    print(text + f"; {lost} proofs lost" * bool(lost) + ("   FAILED" if failed else "") + "\n", flush=True)
    return failed


if __name__ == "__main__":
    main()
