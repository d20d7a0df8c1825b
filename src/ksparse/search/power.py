"""Truncated power iterations, from random starts and from the columns of V: where the search for a sparse principal component begins."""

from __future__ import annotations

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector

SWEEPS = 15  # of power iterations at most
PROBES = 8  # random products that estimate the lengths of columns
SETTLED = 1e-3  # relative change of the explained variance at which a start has found its support


def random_components(problem: SupportProblem, count: int, rng: np.random.Generator) -> list[Vector]:
    """Supports reached by truncated power iteration from many random starts at once, the best first, each once."""
    return _iterated(problem, rng.standard_normal((count, problem.n)))


def column_components(problem: SupportProblem, screened: int, refined: int, rng: np.random.Generator) -> list[Vector]:
    """Supports reached from the k largest entries of columns of V, the best first: a variable and those that go with it.

    Columns are screened by their length, which a few random products estimate; the best by xᵀVx are refined.
    """
    assert problem.model is not None
    length = np.einsum("ij,ij->j", probes := problem.model.H.times(rng.standard_normal((PROBES, problem.n))), probes)
    length[~problem.allowed] = -1.0
    count = min(screened, int(problem.allowed.sum()))
    columns = np.argpartition(-length, count - 1)[:count]
    X = _truncated(problem, -0.5 * problem.model.rows(columns))
    explained, _ = _products(problem.model, X)
    return _iterated(problem, X[np.argsort(-explained, kind="stable")[:refined]])


def _largest(problem: SupportProblem, product: Vector) -> Vector:
    """Where the k largest entries of each row are that are allowed, forced ones among them."""
    size = np.abs(product)
    size[:, ~problem.allowed] = -1.0
    size[:, problem.forced] = np.inf
    return np.argpartition(-size, problem.k - 1, axis=1)[:, : problem.k]


def _truncated(problem: SupportProblem, product: Vector) -> Vector:
    """The k largest entries of each row as a unit vector."""
    rows, top = np.arange(len(product))[:, None], _largest(problem, product)
    X = np.zeros_like(product)
    X[rows, top] = product[rows, top]
    X /= np.maximum(np.abs(X).max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    return X


def _iterated(problem: SupportProblem, X: Vector) -> list[Vector]:
    """The supports where truncated power iterations end from the rows of X, the best first, each once."""
    count = len(X)
    assert problem.model is not None
    before = np.full(count, np.inf)
    for _ in range(SWEEPS):
        explained, product = _products(problem.model, X * problem.allowed)
        if (np.abs(explained - before) <= SETTLED * explained).all():
            break
        before = explained
        X = _truncated(problem, product)
    explained, _ = _products(problem.model, X)
    supports: dict[bytes, Vector] = {}
    for support in np.sort(_largest(problem, X), axis=1)[np.argsort(-explained, kind="stable")]:
        supports.setdefault(support.tobytes(), support)
    return list(supports.values())


def _products(model: QuadraticModel, X: Vector) -> tuple[Vector, Vector]:
    """xᵀVx and Vx for the rows x of X."""
    product = -0.5 * model.H.times(X)
    return np.einsum("ij,ij->i", X, product), product
