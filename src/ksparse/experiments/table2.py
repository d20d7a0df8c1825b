"""Table 2: two accelerations of PDCA on regression penalised by λ(‖x‖₁ − ‖x‖₂), from x⁰ = 0."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import ksparse
from ksparse import datasets
from ksparse.experiments.experiment import Experiment
from ksparse.experiments.run import Answer, Instance, Job
from ksparse.losses import LeastSquares
from ksparse.penalties import L1MinusL2
from ksparse.sets import WholeSpace
from ksparse.solve.minimize import minimize_penalized

LAM = 5e-4
OURS = {"continuation": True, "tol": 1e-6}  # a tighter stop than the paper's: from a good start each step brings little
DEFAULT_METHODS = ("APDCA fix", "APDCA bt", "pDCAe", "ours")  # the paper's three, and ours
METHODS = {
    "ours": ("apdca", "backtracking"),
    "APDCA fix": ("apdca", "fixed"),
    "APDCA bt": ("apdca", "backtracking"),
    "pDCAe": ("pdcae", "fixed"),
    "PDCA": ("pdca", "backtracking"),
    "GIST": ("gist", "backtracking"),
    "nmAPG": ("nmapg", "fixed"),
}


def load(i: int, seed: int) -> Instance:
    """The instance of size i, penalised: the value is F."""
    data = datasets.table2(i, seed)

    def value(x: Any) -> float:
        return 0.5 * float(np.sum((data.A @ x - data.b) ** 2)) + LAM * float(np.abs(x).sum() - np.linalg.norm(x))

    return Instance(lambda: LeastSquares(data.A, data.b), WholeSpace(), data.k, value)


def jobs(
    sizes: Sequence[int] = (1, 2, 3, 4, 5), seeds: Sequence[int] = (0,), methods: Sequence[str] = DEFAULT_METHODS, repeats: int = 1
) -> Iterator[Job]:
    """One job per size, seed, method and repetition."""
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"methods must be among {', '.join(METHODS)}, got {method!r}")
    for i in sizes:
        for seed in seeds:
            for method in methods:
                for repetition in range(repeats):
                    yield _job(i, seed, method, repetition)


def _job(i: int, seed: int, label: str, repetition: int) -> Job:
    method, step = METHODS[label]

    def solve(problem: Instance, limit: float) -> Answer:
        loss, time_lipschitz = problem.loss(), float("nan")
        began = time.perf_counter()
        if step == "fixed":
            loss.lipschitz()
            time_lipschitz = time.perf_counter() - began
        left = max(0.0, limit - (time.perf_counter() - began))
        options: dict[str, Any] = OURS if label == "ours" else {}
        result = minimize_penalized(loss, L1MinusL2(LAM), method=method, step=step, max_time=left, **options)
        seconds = time.perf_counter() - began
        return Answer(result, seconds, seconds, time_lipschitz)

    name = f"{720 * i} x {2560 * i}"
    return Job("table2", name, seed, repetition, label, lambda: load(i, seed), solve, {"version": ksparse.__version__, "lam": LAM})


table2 = Experiment(
    "table2",
    "Table 2: accelerations of PDCA on penalised regression",
    jobs,
    "min ½‖Ax − b‖² + λ(‖x‖₁ − ‖x‖₂), λ = 5e-4, from x⁰ = 0. APDCA stops by the relative change of F, pDCAe by that of x.",
    'Our draws of A and b. "ours" is APDCA with backtracking, by continuation in λ. auto has no row: it solves the constrained problem.',
    {"sizes": (1,)},
)
