"""Truncated power iterations from random starts: where the search for a sparse principal component begins."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.linalg.model import QuadraticModel
from ksparse.search.problem import SupportProblem

SETTLED = 1e-3  # relative change of the explained variance at which a start has found its support


def random_components(problem: SupportProblem, count: int, rng: np.random.Generator, sweeps: int = 15) -> list[Vector]:
    """Supports reached by truncated power iteration from many random starts at once, the best first, each once."""
    pieces = problem.pieces
    assert pieces.model is not None
    X = rng.standard_normal((count, problem.n))  # one start per row
    rows, most = np.arange(count)[:, None], problem.most
    before = np.full(count, np.inf)
    for _ in range(sweeps):
        explained, product = _products(pieces.model, X * pieces.allowed)
        if (np.abs(explained - before) <= SETTLED * explained).all():
            break
        before = explained
        size = np.abs(product)
        size[:, ~pieces.allowed] = -1.0
        size[:, pieces.forced] = np.inf
        top = np.argpartition(-size, most - 1, axis=1)[:, :most]
        X = np.zeros_like(X)
        X[rows, top] = product[rows, top]
        X /= np.maximum(np.abs(X).max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    explained, _ = _products(pieces.model, X)
    supports: dict[bytes, Vector] = {}
    for row in np.argsort(-explained, kind="stable"):
        support = np.sort(top[row])
        supports.setdefault(support.tobytes(), support)
    return list(supports.values())


def _products(model: QuadraticModel, X: Vector) -> tuple[Vector, Vector]:
    """xᵀVx and Vx for the rows x of X."""
    product = -0.5 * model.H.times(X)
    return np.einsum("ij,ij->i", X, product), product
