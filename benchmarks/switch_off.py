"""What each part of the search contributes: the suite with one part switched off at a time, five seeds.

    python benchmarks/switch_off.py [--out FILE] [--part PART …] [--family FAMILY …]  # skips solves found in FILE
    python benchmarks/switch_off.py --report [--out FILE]                             # the table

Each row compares with the default search from the same seed: excess of the value in the mean (with its standard error)
and at worst, ratio of CPU times, answers that are no longer proved. One thread. Needs the data in the folder named by
KSPARSE_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse.linalg import aslinearoperator

import ksparse as ks
from ksparse.batch.problem import BatchProblem
from ksparse.data import operator
from ksparse.datasets import communities, diabetes, digits, riboflavin, table5, unmixing
from ksparse.search import starts
from ksparse.search.candidate import SearchOutcome
from rules import grouped
from suite.contenders.ours import pieces
from suite.problems import build, names

SEEDS = range(5)
Instances = Iterator[tuple[str, Callable[..., Any]]]


def planted(m: int, n: int, k: int, snr: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that share a factor, k coefficients, noise."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, n)) + 0.7 * rng.standard_normal((m, 1)), np.zeros(n)
    x[rng.choice(n, k, replace=False)] = rng.standard_normal(k)
    return A, A @ x + np.linalg.norm(x) / np.sqrt(snr) * rng.standard_normal(m)


def suite(group: str, *starts: str) -> Instances:
    for name in names(group):
        if name.startswith(starts):
            problem = build(group, name)
            loss, C = pieces(problem)
            yield name, partial(ks.minimize, loss, problem.k, C, min_nonzero=problem.floor)


def table_5() -> Instances:
    for i, draws in ((1, 20), (2, 12), (3, 6), (5, 1)):
        for draw in range(draws):
            data = table5(i, draw)
            C = ks.Nonnegative(data.nonnegative) if draw % 2 else None
            yield f"i = {i}, {draw}", partial(ks.minimize, ks.LeastSquares(data.A, data.b), data.k, C)


def small_k() -> Instances:
    for draw in range(20):
        data, k = table5(1, draw // 2), 6 + 6 * (draw % 2)
        yield f"Table 5, {draw}", partial(ks.minimize, ks.LeastSquares(data.A, data.b), k)
    for name, (A, b) in {"diabetes": diabetes(quadratic=True)[:2], "communities": communities()}.items():
        A = (A - A.mean(axis=0)) / A.std(axis=0)
        yield name, partial(ks.minimize, ks.LeastSquares(A, b - b.mean()), 10)


def best_subset() -> Instances:
    for draw in range(4):
        A, b = planted(400, 2000, 20, 4.0, draw)
        yield f"{draw}", partial(ks.minimize, ks.LeastSquares(A, b), 20, ks.Nonnegative() if draw % 2 else None)


def logistic() -> Instances:
    for draw in range(4):
        A, b = planted(300, 100, 8, 2.0, draw)
        C = ks.Box(-0.5, 0.5) if draw % 2 else None
        yield f"{draw}", partial(ks.minimize, ks.Logistic(A, np.sign(b - np.median(b)), ridge=1.0), 8, C)


def components() -> Instances:
    yield from suite("sparse_pca", "")
    for name, A in {"digits": digits()[0], "communities": communities()[0], "riboflavin": riboflavin()[0]}.items():
        for k in (5, 20):
            loss = ks.PrincipalComponent.from_data(np.asarray(A, dtype=float))
            yield f"{name}, k = {k}", partial(ks.minimize, loss, k, ks.L2Ball())
    for draw in range(6):
        A = np.random.default_rng(draw).standard_normal((30, 150))
        yield f"noise, {draw}", partial(ks.minimize, ks.PrincipalComponent.from_data(A), 12, ks.L2Ball())


def batches() -> Instances:
    for name, (A, X) in unmixing().items():
        rng = np.random.default_rng(0)
        for count in (30, 100):
            clean = A @ X[:, rng.permutation(X.shape[1])[:count]]
            noise = rng.standard_normal(clean.shape)
            B = clean + noise * np.linalg.norm(clean, axis=0) / np.linalg.norm(noise, axis=0) * 10**-1.5
            yield f"{name}, {count}", partial(ks.minimize_many, A, B, 5, ks.Nonnegative())


def groups() -> Instances:
    for draw in range(4):
        A, b, labels = grouped(draw, 100, 300, 10, planted=bool(draw % 2))
        yield f"groups, {draw}", partial(ks.minimize, ks.LeastSquares(A, b), 10, groups=labels)
        A, b = planted(120, 60, 15, 3.0, draw)
        chains = {child: [child - 1] for child in range(60) if child % 6}
        yield f"chains, {draw}", partial(ks.minimize, ks.LeastSquares(A, b), 9, requires=chains)


def gradients() -> Instances:
    for draw in range(2):
        A, b = planted(100, 60, 6, 3.0, draw)
        yield f"ball, {draw}", partial(ks.minimize, ks.Huber(A, b, 1.0), 5, ks.L2Ball(1.0))
        Q = A[:60].T @ A[:60] - 80.0 * np.eye(60)
        yield f"not convex, {draw}", partial(ks.minimize, ks.Quadratic(Q, -b[:60]), 5, ks.Box(-1.0, 1.0))


def operators() -> Instances:
    with patch.object(operator, "MANY", 100):  # columns from which an operator hides them
        for draw in range(4):
            A, b = planted(200, 1500, 12, 3.0, draw)
            yield f"{draw}", partial(ks.minimize, ks.LeastSquares(aslinearoperator(A), b), 12)


FAMILIES: dict[str, Callable[[], Instances]] = {
    "Table 5": table_5,
    "small k": small_k,
    "best subset": best_subset,
    "genes": partial(suite, "knob", "genes"),
    "logistic": logistic,
    "return rows": partial(suite, "rows", "port2", "port4", "port5", "generated"),
    "caps": partial(suite, "caps", "sectors 200", "pard200_b", "pard300_a"),
    "components": components,
    "batches": batches,
    "groups": groups,
    "gradients": gradients,
    "operators": operators,
}
BATCHES, OTHERS = ("batches",), tuple(name for name in FAMILIES if name != "batches")


def nothing(*_: Any, **__: Any) -> Any:
    return iter(())


def without_widening(problem: Any, *rest: Any, perturbations: Any = BatchProblem.perturbations) -> Any:
    found = perturbations(problem, *rest)
    found[:, 0] = 0
    return found


def without_negative_curvature(name: str, *rest: Any, as_start: Any = starts._as_start) -> Any:
    return iter(()) if name == "negative curvature" else as_start(name, *rest)


SEARCH, STARTS = "ksparse.search.", "ksparse.search.starts."
# by name: families, and settings or what replaces a function
PARTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "none": (tuple(FAMILIES), {}),
    "enumeration": (OTHERS, {"enumerated": 0}),
    "walks and oscillation in k": (OTHERS, {f"{SEARCH}perturbation._escape": nothing}),
    "oscillation in k": (OTHERS, {f"{SEARCH}perturbation._oscillate_in_k": nothing}),
    "walks (oscillation instead)": (OTHERS, {"walks": 2**40}),
    "perturbations": (OTHERS, {"returns": 0}),
    "pair swaps": (OTHERS, {f"{SEARCH}perturbation._pair_swaps": nothing}),
    "block moves": (("groups",), {f"{SEARCH}local_search.LocalSearch._block_moves": nothing}),
    "other starts": (OTHERS, {f"{SEARCH}perturbation._other_starts": nothing}),
    "relaxation starts (random instead)": (OTHERS, {f"{STARTS}_relaxed_supports": nothing}),
    "random starts": (OTHERS, {"drawn": 0}),
    "hard thresholding": (OTHERS, {f"{STARTS}_hard_thresholding": nothing}),
    "penalised starts": (OTHERS, {f"{STARTS}_penalised": nothing}),
    "start by negative curvature": (("gradients",), {f"{STARTS}_as_start": without_negative_curvature}),
    "search on models": (("genes", "logistic"), {"large": 2**62}),
    "restarts on models": (("genes",), {"restarts": 0}),
    "descent before the proof": (
        OTHERS,
        {f"{SEARCH}explore.local_search": lambda problem, strategy, best: SearchOutcome(best)},
    ),
    "column generation": (("operators",), {f"{SEARCH}explore.search_on_columns": nothing}),
    "columns of V": (("components",), {f"{STARTS}column_components": lambda *_: []}),
    "end at a clear support": (OTHERS, {"clear": 1e300}),
    "batches: widening": (BATCHES, {"ksparse.batch.problem.BatchProblem.perturbations": without_widening}),
    "batches: shared starts": (BATCHES, {"ksparse.batch.rounds.POOL": 0}),
}


def solve(call: Callable[..., Any], seed: int, changes: dict[str, Any]) -> tuple[float, float, bool]:
    """Value, CPU seconds, and whether optimality or swap optimality is proved."""
    settings = {name: value for name, value in changes.items() if "." not in name}
    given = {"settings": ks.SearchSettings(**settings)} if settings else {}
    with ExitStack() as stack:
        for name in changes.keys() - settings.keys():
            stack.enter_context(patch(name, changes[name]))
        began = time.process_time()
        result = call(random_state=seed, **given)
        seconds = time.process_time() - began
    status = result.status if isinstance(result, ks.Result) else None
    return float(np.sum(result.fun)), seconds, status in (ks.Status.OPTIMAL, ks.Status.SWAP_OPTIMAL)


def run(out: Path, parts: list[str], families: list[str]) -> None:
    done = {tuple(json.loads(line)[:4]) for line in out.read_text().splitlines()} if out.exists() else set()
    for family in families:
        for name, call in FAMILIES[family]():
            call(random_state=0)  # compiled
            for part in parts:
                if family not in PARTS[part][0]:
                    continue
                for seed in SEEDS:
                    if (part, family, name, seed) not in done:
                        row = [part, family, name, seed, *solve(call, seed, PARTS[part][1])]
                        with out.open("a") as file:
                            file.write(json.dumps(row) + "\n")


def report(out: Path) -> None:
    rows = {tuple(row[:4]): row[4:] for row in map(json.loads, out.read_text().splitlines())}
    print("| without | family | mean (%) | worst (%) | time | proofs lost |\n|---|---|--:|--:|--:|--:|")
    for part in list(PARTS)[1:]:
        for family in FAMILIES:
            pairs = [(rows["none", *key[1:]], row) for key, row in rows.items() if key[:2] == (part, family)]
            if not pairs:
                continue
            excess = np.array([100 * (new[0] - old[0]) / abs(old[0]) for old, new in pairs])
            lost = sum(old[2] and not new[2] for old, new in pairs)
            ratio = sum(new[1] for _, new in pairs) / sum(old[1] for old, _ in pairs)
            mean = f"{excess.mean():+.3f} ± {excess.std() / np.sqrt(excess.size):.3f}"
            print(f"| {part} | {family} | {mean} | {excess.max():.2f} | {ratio:.2f} | {lost} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("switch_off.jsonl"))
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    if given.report:
        report(given.out)
    else:
        run(given.out, given.part or list(PARTS), given.family or list(FAMILIES))
