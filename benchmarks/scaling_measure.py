"""Measurements of `scaling.py`: seconds and peak memory at each size of one sweep, in a process with pinned threads.

Run by `scaling.py` with a job as JSON; prints one row as JSON per size.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse

import ksparse as ks

METHODS = ("pdca", "apdca", "pdcae")
MEMORY_STEPS = 10  # a step lets go of the arrays of the one before, so that a few show the peak
ENOUGH = 5.0  # seconds after which a measurement is not repeated


@dataclass(frozen=True)
class Shape:
    """Size of one planted least-squares problem."""

    m: int
    n: int
    k: int
    row_nonzeros: int | None = None  # per row of a CSR matrix; None for a dense one

    @property
    def bytes(self) -> int:
        """Estimate the bytes of A and b; nonzeros of a row may coincide."""
        entries = 8 * self.m * self.n if self.row_nonzeros is None else (12 * self.row_nonzeros + 4) * self.m
        return entries + 8 * self.m


@dataclass(frozen=True)
class Row:
    """Measurements at one size."""

    shape: Shape
    input_bytes: int
    nnz: int
    seconds: dict[str, float]  # per step for each of METHODS, for the whole call for auto
    # peak memory of the same calls beyond the input; under "L" that of the loss and its Lipschitz constant
    extra_bytes: dict[str, int]


@dataclass(frozen=True)
class Job:
    """One sweep to measure."""

    shapes: list[Shape]
    steps: int
    repeats: int
    seconds: float  # no size is begun that would not fit
    top_k: bool  # the penalty with k in it, for the sweep over k

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read the job written by `asdict` and `json.dumps`."""
        fields = json.loads(text)
        return cls(**{**fields, "shapes": [Shape(**shape) for shape in fields["shapes"]]})


def planted(shape: Shape) -> tuple[Any, np.ndarray]:
    """A and b = Ax + noise, x with k nonzeros of size 1 to 3."""
    rng = np.random.default_rng(0)
    m, n, k = shape.m, shape.n, shape.k
    A = rng.standard_normal((m, n)) if shape.row_nonzeros is None else _sparse(rng, m, n, shape.row_nonzeros)
    x = np.zeros(n)
    x[rng.choice(n, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(1.0, 3.0, k)
    return A, A @ x + 0.5 * rng.standard_normal(m)


def _sparse(rng: np.random.Generator, m: int, n: int, row_nonzeros: int) -> scipy.sparse.csr_array:
    columns = rng.integers(0, n, m * row_nonzeros, dtype=np.int32)
    ends = np.arange(0, m * row_nonzeros + 1, row_nonzeros, dtype=np.int32)
    A = scipy.sparse.csr_array((rng.standard_normal(columns.size), columns, ends), shape=(m, n))
    A.sum_duplicates()
    return A.copy()  # without the room that the duplicates had


def input_bytes(A: Any, b: np.ndarray) -> int:
    parts = (A.data, A.indices, A.indptr) if scipy.sparse.issparse(A) else (A,)
    return sum(part.nbytes for part in parts) + b.nbytes


def median_run(call: Callable[[], ks.Result], repeats: int) -> tuple[ks.Result, float]:
    """Return the last of up to `repeats` results, fewer for long calls, and the median of their seconds."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < ENOUGH:
        began = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - began)
    return result, float(np.median(times))


def peak_extra(call: Callable[[], Any]) -> int:
    """Return the peak of bytes allocated by Python and NumPy during a call."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def measure(shape: Shape, job: Job) -> Row:
    """Measure seconds, then memory in separate calls, because counting allocations slows them down."""
    A, b = planted(shape)
    loss = ks.LeastSquares(A, b)
    L = loss.lipschitz()  # paid once, apart
    penalty = ks.TopK2(0.01 * L, shape.k) if job.top_k else ks.L1MinusL2(0.1 * float(np.abs(A.T @ b).max()))

    def run(loss: ks.LeastSquares, method: str, steps: int) -> ks.Result:
        return ks.minimize_penalized(loss, penalty, method=method, step="fixed", tol=0.0, max_iter=steps)

    seconds, extra = {}, {"L": peak_extra(lambda: ks.LeastSquares(A, b).lipschitz())}
    for method in METHODS:
        run(loss, method, 2)  # the warm-up
        result, whole = median_run(lambda method=method: run(loss, method, job.steps), job.repeats)
        seconds[method] = whole / result.nit  # steps that no longer change F end a run early
        extra[method] = peak_extra(lambda method=method: run(loss, method, min(job.steps, MEMORY_STEPS)))
    _, seconds["auto"] = median_run(lambda: ks.minimize(loss, shape.k), job.repeats)
    extra["auto"] = peak_extra(lambda: ks.minimize(ks.LeastSquares(A, b), shape.k))
    return Row(shape, input_bytes(A, b), int(A.nnz) if scipy.sparse.issparse(A) else A.size, seconds, extra)


def rows(job: Job) -> Iterator[Row]:
    """Yield rows up to the last size that fits in the time; each size is assumed to take twice as long."""
    A, b = planted(Shape(30, 60, 3))
    ks.minimize(ks.LeastSquares(A, b), 3)  # what is loaded on first use is loaded now
    began, last = time.perf_counter(), 0.0
    for shape in job.shapes:
        started = time.perf_counter()
        if started - began + 2.0 * last > job.seconds:
            return
        yield measure(shape, job)
        last = time.perf_counter() - started


if __name__ == "__main__":
    for row in rows(Job.from_json(sys.argv[1])):
        print(json.dumps(asdict(row)), flush=True)
