"""The experiments of the paper: Tables 2 to 5 and the box plot (pit props)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import ksparse
from ksparse import datasets
from ksparse.datasets import Assets
from ksparse.experiments.paper import COLON, TOKYO
from ksparse.experiments.row import frame
from ksparse.experiments.run import LIMIT, METHODS, Answer, Instance, Job, Out, Watch, run, sparse_job
from ksparse.losses import LeastSquares, MeanVariance, PrincipalComponent
from ksparse.penalties import L1MinusL2
from ksparse.sets import Hyperplane, L2Ball, Nonnegative, WholeSpace
from ksparse.solve.minimize import minimize_penalized

if TYPE_CHECKING:
    import pandas as pd

Names = Sequence[str]
Numbers = Sequence[int]
ALL = tuple(METHODS)
SOLVERS = "The subproblems of l1-DCA and MIP-DCA are solved by PIQP and Clarabel instead of CPLEX."


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper, as a function that returns a tidy table: `table5(sizes=(1, 2), seeds=(0, 1))`.

    The options are those of `jobs`. Rows are saved in the folder `out`, if given, and reused unless `force`.
    """

    name: str
    title: str
    jobs: Callable[..., Iterator[Job]]
    about: str  # the problem
    differs: str  # differences from the paper
    quick: dict[str, Any] = field(default_factory=dict)  # options of a quick run

    def __call__(
        self, *, out: Out = None, limit: float = LIMIT, force: bool = False, watch: Watch | None = None, **options: Any
    ) -> pd.DataFrame:
        """Return a table with one row per instance, seed, repetition and method."""
        return frame(run(self.jobs(**options), out=out, limit=limit, force=force, watch=watch))


def _check_known(kind: str, given: Iterable[str], known: Iterable[str], separator: str = ", ") -> None:
    known = list(known)
    for name in given:
        if name not in known:
            raise ValueError(f"{kind} must be among {separator.join(known)}, got {name!r}")


LAM = 5e-4
OURS = {"continuation": True, "tol": 1e-6}  # tighter than in the paper: after a good start each step changes little
TABLE2_DEFAULT = ("APDCA fix", "APDCA bt", "pDCAe", "ours")  # the three of the paper, and ours
TABLE2_METHODS = {
    "ours": ("apdca", "backtracking"), "APDCA fix": ("apdca", "fixed"), "APDCA bt": ("apdca", "backtracking"),
    "pDCAe": ("pdcae", "fixed"), "PDCA": ("pdca", "backtracking"), "GIST": ("gist", "backtracking"),
    "nmAPG": ("nmapg", "fixed"),
}  # fmt: skip


def load_table2(i: int, seed: int) -> Instance:
    """Return the penalised problem of size i, whose value is F."""
    data = datasets.table2(i, seed)

    def value(x: Any) -> float:
        return 0.5 * float(np.sum((data.A @ x - data.b) ** 2)) + LAM * float(np.abs(x).sum() - np.linalg.norm(x))

    return Instance(lambda: LeastSquares(data.A, data.b), WholeSpace(), data.k, value)


def table2_jobs(
    sizes: Numbers = (1, 2, 3, 4, 5), seeds: Numbers = (0,), methods: Names = TABLE2_DEFAULT, repeats: int = 1
) -> Iterator[Job]:
    """Yield one job per size, seed, method and repetition."""
    _check_known("methods", methods, TABLE2_METHODS)
    for i, seed, method, repetition in product(sizes, seeds, methods, range(repeats)):
        yield _table2_job(i, seed, method, repetition)


def _table2_job(i: int, seed: int, label: str, repetition: int) -> Job:
    method, step = TABLE2_METHODS[label]

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

    name, settings = f"{720 * i} x {2560 * i}", {"version": ksparse.__version__, "lam": LAM}
    return Job("table2", name, seed, repetition, label, partial(load_table2, i, seed), solve, settings)


table2 = Experiment(
    "table2", "Table 2: accelerations of PDCA on penalised regression", table2_jobs,
    "min ½‖Ax − b‖² + λ(‖x‖₁ − ‖x‖₂), λ = 5e-4, from x⁰ = 0. "
    "APDCA stops by the relative change of F, pDCAe by that of x.",
    'A and b are drawn anew. "ours" is APDCA with backtracking, by continuation in λ. auto has no row, because it '
    "solves the constrained problem.",
    {"sizes": (1,)},
)  # fmt: skip

K, RHO, STARTS = 5, 1.0, 100


def load_pitprops() -> Instance:
    """Return the sparse PCA problem of the pit props data."""
    R, _ = datasets.pit_props()
    return Instance(lambda: PrincipalComponent(R), L2Ball(), K, lambda x: -float(x @ R @ x))


def pitprops_jobs(starts: int = STARTS, methods: Names = ALL, seed: int = 0) -> Iterator[Job]:
    """Yield one job per method and start; start s has x⁰ ~ N(0, I), drawn by the generator seeded with (seed, s)."""
    name = "pit props, 13 x 13"
    for method, s in product(methods, range(starts)):
        x0 = lambda s=s: np.random.default_rng((seed, s)).standard_normal(13)  # noqa: E731
        yield sparse_job("pitprops", name, load_pitprops, method, seed=seed, repetition=s, x0=x0, rho=RHO)


pitprops = Experiment(
    "pitprops", "Pit props: objective from random starts", pitprops_jobs,
    "min −xᵀRx s.t. ‖x‖₀ ≤ 5, ‖x‖₂ ≤ 1, R the 13 × 13 correlations of the pit props, ρ = 1, from x⁰ ~ N(0, I).",
    f"The starts are drawn anew. {SOLVERS}",
    {"starts": 30},
)  # fmt: skip

TABLE3_DATA: dict[str, tuple[Callable[[], Any], int]] = {  # name: data matrix, k
    COLON: (lambda: datasets.colon()[0], 100),
    "digits, 1797 x 61": (lambda: datasets.digits()[0], 10),  # part of scikit-learn, needs no file
    "leukemia, 72 x 7129": (lambda: datasets.leukemia()[0], 100),
}
TABLE3_DEFAULT = (COLON, "digits, 1797 x 61")


def load_table3(name: str) -> Instance:
    """Return the sparse PCA problem of one of TABLE3_DATA."""
    make, k = TABLE3_DATA[name]
    X = make()
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1) / np.sqrt(len(X) - 1)  # R = ZᵀZ
    return Instance(lambda: PrincipalComponent.from_data(X), L2Ball(), k, lambda x: -float(np.sum((Z @ x) ** 2)))


def table3_jobs(instances: Names = TABLE3_DEFAULT, methods: Names = ALL, repeats: int = 1) -> Iterator[Job]:
    """Yield one job per instance, method and repetition."""
    _check_known("instances", instances, TABLE3_DATA, "; ")
    for name, method, repetition in product(instances, methods, range(repeats)):
        yield sparse_job("table3", name, partial(load_table3, name), method, repetition=repetition)


table3 = Experiment(
    "table3", "Table 3: sparse principal component", table3_jobs,
    "min −xᵀRx s.t. ‖x‖₀ ≤ k, ‖x‖₂ ≤ 1, R the correlation matrix, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"The paper does not describe the preparation of the colon data; here they are raw intensities. {SOLVERS} The "
    "digits are not in the paper.",
)  # fmt: skip

TABLE4_ALPHA, TABLE4_K = 10.0, 10
FULL, SMALL = "generated, 2148 x 1338", "generated, 600 x 300"
TABLE4_DATA: dict[str, Callable[[int], Assets]] = {
    TOKYO: lambda seed: datasets.tokyo(),
    FULL: lambda seed: datasets.factor_model(seed=seed),  # needs no file
    SMALL: lambda seed: datasets.factor_model(300, 600, seed),
}


def load_table4(name: str, seed: int) -> Instance:
    """Return the portfolio problem of one of TABLE4_DATA."""
    assets = TABLE4_DATA[name](seed)
    V, r = assets.V, assets.r
    return Instance(
        lambda: MeanVariance(V, r, TABLE4_ALPHA), Hyperplane(), TABLE4_K,
        lambda x: float(TABLE4_ALPHA * (x @ V @ x) - r @ x), lambda x: float(r @ x),
    )  # fmt: skip


def table4_jobs(
    instances: Names = (TOKYO, FULL), methods: Names = ALL, repeats: int = 1, seed: int = 0
) -> Iterator[Job]:
    """Yield one job per instance, method and repetition; the seed is that of the generated returns."""
    _check_known("instances", instances, TABLE4_DATA, "; ")
    for name, method, repetition in product(instances, methods, range(repeats)):
        yield sparse_job("table4", name, partial(load_table4, name, seed), method, seed=seed, repetition=repetition)


table4 = Experiment(
    "table4", "Table 4: portfolio of at most 10 assets", table4_jobs,
    "min 10xᵀVx − rᵀx s.t. ‖x‖₀ ≤ 10, 1ᵀx = 1, V and r of daily returns, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"The Tokyo data are of 2013–2022 instead of 2008–2016. {SOLVERS} The generated returns are not in the paper.",
    {"instances": (TOKYO, SMALL)},
)  # fmt: skip


def load_table5(i: int, seed: int) -> Instance:
    """Return the regression problem of size i."""
    data = datasets.table5(i, seed)
    return Instance(
        lambda: LeastSquares(data.A, data.b), Nonnegative(data.nonnegative), data.k,
        lambda x: 0.5 * float(np.sum((data.A @ x - data.b) ** 2)),
    )  # fmt: skip


def table5_jobs(
    sizes: Numbers = (1, 2, 3, 4, 5), seeds: Numbers = (0,), methods: Names = ALL, repeats: int = 1
) -> Iterator[Job]:
    """Yield one job per size, seed, method and repetition."""
    for i, seed, method, repetition in product(sizes, seeds, methods, range(repeats)):
        name, load = f"{180 * i} x {640 * i}", partial(load_table5, i, seed)
        yield sparse_job("table5", name, load, method, seed=seed, repetition=repetition)


table5 = Experiment(
    "table5", "Table 5: sparse least squares with signs", table5_jobs,
    "min ½‖Ax − b‖² s.t. ‖x‖₀ ≤ k, the first tenth of x nonnegative, from x⁰ = 1/n, ρ the best of 10⁻⁴…10⁴.",
    f"A and b are drawn anew, with b scaled to unit norm. {SOLVERS} With few rows they are solved in the dual, "
    "which is many times smaller.",
    {"sizes": (1, 2)},
)  # fmt: skip

EXPERIMENTS = {experiment.name: experiment for experiment in (table2, pitprops, table3, table4, table5)}


def jobs_of(names: list[str], quick: bool) -> list[Job]:
    """Return the jobs of some experiments, in the order of EXPERIMENTS."""
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in names]
    return [job for experiment in chosen for job in experiment.jobs(**experiment.quick if quick else {})]
