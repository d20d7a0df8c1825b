"""Regression problems: the paper's two generators, planted supports, a large sparse matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from suite.problem import Problem

SEEDS = (0, 1, 2)
OTHER_SEEDS = range(3, 10)  # on which nothing in the search was chosen


def table2_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    return {f"i = {i}": partial(_table2, i) for i in ((1,) if quick else range(1, 6))}


def _table2(i: int) -> Problem:
    from ksparse.datasets import table2

    data = table2(i, seed=0)
    return Problem("penalised", data.k, A=data.A, b=data.b, lam=5e-4)  # the weight of Table 2


def table5_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    return _table5_of(SEEDS, quick)


def other_seeds_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    return _table5_of(OTHER_SEEDS, quick)


def _table5_of(seeds: Sequence[int], quick: bool) -> dict[str, Callable[[], Problem]]:
    return {
        f"i = {i}, seed {seed}{', signs' if signs else ''}": partial(_table5, i, seed, signs)
        for i in ((1,) if quick else range(1, 6))
        for seed in (seeds[:1] if quick else seeds)
        for signs in (False, True)
    }


def _table5(i: int, seed: int, signs: bool) -> Problem:
    from ksparse.datasets import table5

    data = table5(i, seed)
    return Problem(
        "least squares", data.k, A=data.A, b=data.b, nonnegative=data.nonnegative if signs else data.nonnegative[:0]
    )


def knob_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return problems for `effort`: Table 5 without signs on other seeds than before, and gene-like classes."""
    instances = {
        f"i = {i}, seed {seed}": partial(_table5, i, seed, False) for i in range(1, 6) for seed in range(3, 30)
    }
    return gene_builders(quick) | ({} if quick else instances)


def effort_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return hard problems of several kinds for curves of the objective against time."""
    if quick:
        return {"i = 1, seed 10": partial(_table5, 1, 10, False)}
    instances = {f"i = {i}, seed {seed}": partial(_table5, i, seed, False) for i in (1, 3, 5) for seed in (10, 11)}
    products = {f"diabetes, products, k = {k}": partial(_products, k) for k in (5, 20)}
    crimes = {f"communities, products, k = {k}": partial(_crimes, k) for k in (5, 50)}
    return (
        instances
        | products
        | crimes
        | {name: build for name, build in gene_builders(False).items() if name.startswith("genes 0")}
    )


def _products(k: int) -> Problem:
    from ksparse.datasets import diabetes

    A, b = diabetes(quadratic=True)[:2]
    return Problem("least squares", k, A=A, b=b)


def _crimes(k: int) -> Problem:
    """Regress crimes on the columns and all products of two of them, each centred and of unit length."""
    from ksparse.datasets import communities

    X, b = communities()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    left, right = np.triu_indices(X.shape[1])
    A = np.hstack([X, X[:, left] * X[:, right]])
    A -= A.mean(axis=0)
    length = np.sqrt((A * A).sum(axis=0))
    return Problem("least squares", k, A=A[:, length > 0] / length[length > 0], b=b - b.mean())


def best_subset_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    m, n, k = (500, 1000, 10) if quick else (5000, 10_000, 100)
    return {
        name: partial(planted, m, n, k, nonnegative=signs)
        for name, signs in (("signs free", False), ("nonnegative", True))
    }


def planted(m: int, n: int, k: int, nonnegative: bool, seed: int = 0) -> Problem:
    """Data of skscope's comparison of libraries: independent N(0, 1) columns, coefficients ±1, ±2, ±3, noise N(0, 1).

    That comparison draws with abess.datasets.make_glm_data and coef_=..., which at rho = 0 and sigma = 1 is this.
    """
    rng = np.random.default_rng(seed)
    x = np.zeros(n)
    x[rng.choice(n, k, replace=False)] = rng.integers(1, 4, k) * (1 if nonnegative else rng.choice([-1, 1], k))
    A = rng.standard_normal((m, n))
    b = A @ x + rng.standard_normal(m)
    return Problem("least squares", k, A=A, b=b, nonnegative=np.arange(n if nonnegative else 0))


def logistic_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    m, n, k = (400, 500, 8) if quick else (2000, 5000, 50)
    return {"planted": partial(_logistic, m, n, k)}


def _logistic(m: int, n: int, k: int, seed: int = 0) -> Problem:
    """Coefficients ±U(¼, ½), so that the classes overlap on every k columns and the plain loss has a minimiser."""
    rng = np.random.default_rng(seed)
    x = np.zeros(n)
    x[rng.choice(n, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.25, 0.5, k)
    A = rng.standard_normal((m, n))
    y = np.where(rng.uniform(size=m) < 1.0 / (1.0 + np.exp(-A @ x)), 1.0, -1.0)
    return Problem("logistic", k, A=A, b=y)


def gene_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    m, n = (60, 400) if quick else (102, 6033)
    return {
        f"genes {seed}, k = {k}": partial(_genes, m, n, k, seed)
        for seed in ((0,) if quick else range(5))
        for k in (5, 10)
    }


def _genes(m: int, n: int, k: int, seed: int) -> Problem:
    """Two classes, far more columns than rows: correlated blocks of columns, 60 shifted by class, flipped labels.

    Any ten of these columns separate the classes: a ridge of 1 keeps the coefficients finite.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    y = np.where(rng.permutation(m) < m // 2, 1.0, -1.0)
    for _ in range(60):
        block = rng.choice(n, int(rng.integers(10, 120)), replace=False)
        loading = rng.uniform(0.5, 1.5, block.size) * rng.choice([-1, 1], block.size)
        A[:, block] += rng.uniform(0.5, 1.5) * np.outer(rng.standard_normal(m), loading)
    shifted = rng.choice(n, 60, replace=False)
    A[:, shifted] += np.outer(0.5 * y, rng.normal(0.0, 0.5, 60))
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    return Problem("logistic", k, A=A, b=np.where(rng.random(m) < 0.1, -y, y), ridge=1.0)


def csr_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    m, n, a_row, k = (2000, 5000, 20, 10) if quick else (50_000, 200_000, 50, 50)
    return {"planted": partial(_csr, m, n, a_row, k)}


def _csr(m: int, n: int, a_row: int, k: int, seed: int = 0) -> Problem:
    """Rows of `a_row` N(0, 1) entries, one per block of n / a_row columns; coefficients ±1, ±2, ±3, small noise."""
    rng = np.random.default_rng(seed)
    width = n // a_row
    columns = rng.integers(width, size=(m, a_row)) + width * np.arange(a_row)
    A: Any = scipy.sparse.csr_array(
        (
            rng.standard_normal(m * a_row),
            columns.ravel().astype(np.int32),
            np.arange(0, m * a_row + 1, a_row, dtype=np.int32),
        ),
        shape=(m, n),
    )
    x = np.zeros(n)
    x[rng.choice(n, k, replace=False)] = rng.integers(1, 4, k) * rng.choice([-1, 1], k)
    return Problem("least squares", k, A=A, b=A @ x + 0.1 * rng.standard_normal(m))


def gap_builders(quick: bool) -> dict[str, Callable[[], Problem]]:
    """Return problems for the gap after a minute: real data, random columns, OKRidge's example, logistic."""
    if quick:
        return {"random 100 × 20": partial(_every, 100, 20, 4)}
    real = {f"{name}, k = {k}": partial(_real, name, k) for name in ("diabetes", "communities") for k in (5, 10)}
    ridges = {
        f"logistic, ridge {ridge:g}": partial(_ridged_logistic, ridge) for ridge in (1.0, 10.0, 20.0, 50.0, 100.0)
    }
    return (
        real | {"random 1000 × 100, k = 10": partial(_every, 1000, 100, 10), "OKRidge 6000 × 3000": _okridge} | ridges
    )


def _real(name: str, k: int) -> Problem:
    """Scale columns to mean 0 and variance 1."""
    from ksparse import datasets

    A, b = datasets.diabetes(quadratic=True)[:2] if name == "diabetes" else datasets.communities()
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    return Problem("least squares", k, A=(A - A.mean(axis=0)) / A.std(axis=0), b=b - b.mean())


def _every(m: int, n: int, k: int, snr: float = 1.0, correlation: float = 0.0, ridge: float = 0.0) -> Problem:
    """Return a support of every n/k-th column with signs ±1."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    for j in range(1, n if correlation else 0):
        A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    x = np.zeros(n)
    x[:: n // k] = rng.choice([-1.0, 1.0], x[:: n // k].size)
    signal = A @ x
    return Problem(
        "least squares", k, A=A, b=signal + rng.standard_normal(m) * signal.std() / np.sqrt(snr), ridge=ridge
    )


def _okridge() -> Problem:
    return _every(6000, 3000, 10, snr=5.0, correlation=0.5, ridge=0.1)


def _ridged_logistic(ridge: float, m: int = 2000, n: int = 1000, k: int = 10) -> Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    x = np.zeros(n)
    x[:: n // k] = rng.choice([-1.0, 1.0], k)
    return Problem(
        "logistic", k, A=A, b=np.where(rng.uniform(size=m) < 1 / (1 + np.exp(-A @ x)), 1.0, -1.0), ridge=ridge
    )
