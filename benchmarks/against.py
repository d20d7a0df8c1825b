"""Ours against an older ksparse: CPU time and answers on groups of the suite, one thread each, by turns.

    git worktree add ../older COMMIT
    python benchmarks/against.py ../older/src table5 best_subset portfolios

Each of the two has a process of its own that stays; of several solves the shortest counts, since other work only ever adds. Prints a line
per problem and, for each group, the geometric mean of the ratios and the worst change of an answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from suite.problems import names

TURNS, SOLVES = 3, 2  # of each of the two, and in each turn
CHILD = """
import json, sys, time
import ksparse as ks
from suite.contenders.ours import pieces
from suite.problems import build
for line in sys.stdin:
    group, name, solves = json.loads(line)
    problem = build(group, name)
    loss, C = pieces(problem)
    times = []
    for _ in range(solves):
        before = time.process_time()
        found = ks.minimize(loss, problem.k, C)
        times.append(time.process_time() - before)
    print(json.dumps([min(times), found.fun]), flush=True)
"""


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    here = Path(__file__).parent
    older, newer = (start(source, here) for source in (Path(sys.argv[1]).resolve(), here.parent / "src"))
    for group in sys.argv[2:]:
        ratios, changes = [], []
        for name in names(group):
            pairs = [(ask(older, group, name), ask(newer, group, name)) for _ in range(TURNS)]
            (before, was), (after, now) = (min(turn) for turn in zip(*pairs, strict=True))
            ratios.append(after / before)
            changes.append(100.0 * (now - was) / abs(was))
            print(f"{group}, {name}: {before:.4f} s, now {after:.4f} s ({ratios[-1]:.2f}); {was:.8g}, now {now:.8g}", flush=True)
        mean = float(np.exp(np.mean(np.log(ratios))))
        print(f"== {group}: time {mean:.2f} of the older on average, at most {max(ratios):.2f}; answers at most {max(changes):+.4f} %\n")


def start(source: Path, here: Path) -> subprocess.Popen[str]:
    """A process with one of the two."""
    one = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    paths = {"PYTHONPATH": os.pathsep.join([str(source), str(here)])}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | one | paths,
    )


def ask(child: subprocess.Popen[str], group: str, name: str) -> tuple[float, float]:
    """Seconds and value of one problem."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps([group, name, SOLVES]) + "\n")
    child.stdin.flush()
    answer: Any = child.stdout.readline()
    if not answer:
        raise SystemExit(f"{group}, {name} failed")
    seconds, value = json.loads(answer)
    return seconds, value


if __name__ == "__main__":
    main()
