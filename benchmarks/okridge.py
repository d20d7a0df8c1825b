"""ksparse and okridge on okridge's own example, 6000 × 3000, k = 10, ridge 0.1: a proof to 0.01 %, one thread each.

    python benchmarks/okridge.py --peer other/bin/python

okridge needs NumPy 1 and ksparse NumPy 2, so that it runs in a separate environment (pip install okridge
requests). Both get the same arrays from a file; values are computed here from those arrays. Prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from suite.problems import build

NAME = "OKRidge 6000 × 3000"
OURS = """
import ksparse as ks
found = ks.minimize(ks.LeastSquares(A, b, ridge=ridge), k, gap=1e-4)
x, bound = found.x, found.lower_bound
"""
THEIRS = """
from okridge.tree import BNBTree
value, x, gap, *rest = BNBTree(A, b, lambda2=ridge).solve(k, gap_tol=1e-4)
bound = 0.5 * (value - gap * abs(value) + b @ b)  # its value leaves the constant out
"""
AROUND = """
import json, sys, time
import numpy as np
given = np.load(sys.argv[1])
A, b, k, ridge = given["A"], given["b"], int(given["k"]), float(given["ridge"])
before = time.perf_counter()
{work}
print(json.dumps([time.perf_counter() - before, float(bound), [float(one) for one in x]]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="the Python that has okridge; without it ours alone")
    peer = parser.parse_args().peer
    problem = build("gaps", NAME)
    A, b = problem.A, problem.b
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        np.savez(data, A=A, b=b, k=problem.k, ridge=problem.ridge)
        rows = {"ksparse": run(sys.executable, OURS, data)}
        if peer:
            rows["okridge"] = run(peer, THEIRS, data)
    print("| | objective | lower bound | nonzeros | s |\n|---|--:|--:|--:|--:|")
    for name, (seconds, bound, x) in rows.items():
        left = A @ np.array(x) - b
        value = 0.5 * float(left @ left) + 0.5 * float(problem.ridge) * float(np.square(x).sum())
        print(f"| {name} | {value:.4f} | {bound:.4f} | {np.count_nonzero(x)} | {seconds:.2f} |")
    if peer:
        print(f"\nthe time of ours over theirs: {rows['ksparse'][0] / rows['okridge'][0]:.3f}")


def run(python: str, work: str, data: Path) -> tuple[float, float, list[float]]:
    """Return seconds, bound and x of one solver, run in its own process on one thread."""
    one = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(
        [python, "-c", AROUND.format(work=work), str(data)],
        env=os.environ | one,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{python} failed:\n{done.stderr}")
    seconds, bound, x = json.loads(done.stdout.strip().splitlines()[-1])
    return seconds, bound, x


if __name__ == "__main__":
    main()
