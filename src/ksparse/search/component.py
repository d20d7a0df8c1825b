"""Search for a sparse principal component: max xᵀVx over ‖x‖ ≤ r on a support, V seen through its rows on the support only.

The value on S is λ_max(V_SS). After dropping j and taking i a Rayleigh quotient bounds it from below: that of the best point in
span{x without j, e_i}, a 2 × 2 eigenproblem in closed form, for all pairs at once. The best few are confirmed by an eigensolve.
From above it is bounded by the largest eigenvalue of [[λ_max(S∖j), ‖V_{i,S∖j}‖], [·, V_ii]]; where that is not above the present value
for any pair, or every other pair has been tried, the support is swap-optimal, proved.
"""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector, norm
from ksparse.linalg.bound import EPS
from ksparse.linalg.model import QuadraticModel
from ksparse.search.on_support import leading_eigenvector
from ksparse.search.search import Found
from ksparse.search.task import Candidate, Task, claimable

CONFIRM = 8  # eigensolves per sweep
SETTLED = 1e-3  # relative change of the explained variance at which a start has found its support
PROOF = 2_000  # eigensolves spent on a proof


def search_component(task: Task, start: Candidate) -> Found:
    """Improve a component by filling free seats and swapping until nothing helps."""
    best, moves = start, 0
    while not task.expired:
        better = _grow(task, best) if best.support.size < task.k else None
        better = better or _swap(task, best)
        if better is None:
            break
        best, moves = better, moves + 1
    return Found(best, moves, False)


def _rows(task: Task, support: Vector) -> Vector:
    """V[support, :]."""
    assert task.model is not None
    return -0.5 * task.model.rows(support)


def _diagonal(task: Task) -> Vector:
    assert task.model is not None
    return -0.5 * task.model.diagonal


def _larger_eigenvalue(a: Vector, b: Vector, c: Vector) -> Vector:
    """λ_max of [[a, b], [b, c]], entry by entry."""
    half = 0.5 * (a - c)
    return np.asarray(0.5 * (a + c) + np.sqrt(half * half + b * b))


def _grow(task: Task, at: Candidate) -> Candidate | None:
    """The newcomer with the best Rayleigh quotient beside the present component; any will do, since a seat is free."""
    outsiders = task.outsiders(at)
    if not outsiders.size:
        return None
    diagonal = _diagonal(task)[outsiders]
    if not at.x.any():
        return task.evaluate(np.append(at.support, outsiders[np.argmax(diagonal)]))
    unit = at.x / norm(at.x)
    coupling = unit @ _rows(task, at.support)[:, outsiders]
    value = float(unit @ _rows(task, at.support)[:, at.support] @ unit)
    quotient = _larger_eigenvalue(np.full(outsiders.size, value), coupling, diagonal)
    return task.evaluate(np.append(at.support, outsiders[np.argmax(quotient)]), at)


def _pairs(task: Task, at: Candidate) -> tuple[Vector, Vector]:
    """For every (member j, outsider i): the Rayleigh quotient after their exchange. Rows of forced members are −∞."""
    outsiders = task.outsiders(at)
    V = _rows(task, at.support)
    unit = at.x / norm(at.x)
    Vx = unit @ V
    rest = np.maximum(1.0 - unit**2, 1e-300)  # ‖x without j‖²
    a = (unit @ Vx[at.support] - 2.0 * unit * Vx[at.support] + unit**2 * np.diag(V[:, at.support])) / rest
    b = (Vx[outsiders] - unit[:, None] * V[:, outsiders]) / np.sqrt(rest)[:, None]
    table = _larger_eigenvalue(a[:, None], b, _diagonal(task)[outsiders])
    table[np.isin(at.support, task.forced)] = -np.inf
    return table, outsiders


def _swap(task: Task, at: Candidate) -> Candidate | None:
    """The best of the most promising exchanges, confirmed; None if none of them improves."""
    if not at.x.any():
        return None
    table, outsiders = _pairs(task, at)
    if not table.size:
        return None
    flat = table.ravel()
    count = min(CONFIRM, flat.size)
    top = np.argpartition(-flat, count - 1)[:count]
    best = at
    for place in top[np.argsort(-flat[top], kind="stable")]:
        if np.isfinite(flat[place]):
            j, i = divmod(int(place), outsiders.size)
            tried = task.evaluate(np.append(np.delete(at.support, j), outsiders[i]), at)
            best = best if tried is None else min(best, tried, key=lambda candidate: candidate.value)
    return best if best.value < at.value * (1 + 1e-12) else None


def prove_component(task: Task, at: Candidate) -> bool:
    """Whether no exchange can improve: by the bound from above, and by trying those it does not exclude."""
    assert task.model is not None
    if at.support.size < min(task.k, int(task.allowed.sum())):
        return False
    if not at.x.any():
        return not (_diagonal(task)[task.allowed] > 0).any()
    target = at.value - claimable(task, at.value)
    if task.lower_bound(at.support) < target:
        return False
    outsiders = task.outsiders(at)
    V = _rows(task, at.support)
    scale = float(np.abs(V).max())  # squares may overflow
    squares = (V[:, outsiders] / scale) ** 2
    all_squares = squares.sum(axis=0)
    present, blur = -target / float(at.x @ at.x), at.support.size * (8.0 * EPS + task.model.noise.entries) * scale
    spent = 0
    for j in np.flatnonzero(~np.isin(at.support, task.forced)):
        others = np.delete(np.arange(at.support.size), j)
        without = _not_above(V[np.ix_(others, at.support[others])], at.x[others], blur) if others.size else 0.0
        coupling = scale * np.sqrt(np.maximum(all_squares - squares[j], 0.0)) + blur
        bound = _larger_eigenvalue(np.full(outsiders.size, without), coupling, _diagonal(task)[outsiders]) + blur
        for i in np.flatnonzero(~(bound <= present)):
            spent += 1
            if spent > PROOF or task.expired or task.lower_bound(np.append(at.support[others], outsiders[i])) < target:
                return False
    return True


def _not_above(V: Vector, near: Vector, blur: float) -> float:
    """A number that λ_max(V) is not above, close to it: power iteration guesses it, a Cholesky factorisation of its distance proves it."""
    guess = leading_eigenvector(V, near)[0] * (1.0 + 1e-12) + blur
    try:
        np.linalg.cholesky(guess * np.eye(len(V)) - V)
    except np.linalg.LinAlgError:
        return float(np.linalg.eigvalsh(V)[-1]) + blur
    return guess + blur


def random_components(task: Task, count: int, rng: np.random.Generator, sweeps: int = 15) -> list[Vector]:
    """Supports reached by truncated power iteration from many random starts at once, the best first, each once."""
    assert task.model is not None
    X = rng.standard_normal((count, task.n))  # one start per row
    rows, seats = np.arange(count)[:, None], min(task.k, int(task.allowed.sum()))
    before = np.full(count, np.inf)
    for _ in range(sweeps):
        explained, product = _products(task.model, X * task.allowed)
        if (np.abs(explained - before) <= SETTLED * explained).all():
            break
        before = explained
        size = np.abs(product)
        size[:, ~task.allowed] = -1.0
        size[:, task.forced] = np.inf
        top = np.argpartition(-size, seats - 1, axis=1)[:, :seats]
        X = np.zeros_like(X)
        X[rows, top] = product[rows, top]
        X /= np.maximum(np.abs(X).max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    explained, _ = _products(task.model, X)
    supports: dict[bytes, Vector] = {}
    for row in np.argsort(-explained, kind="stable"):
        support = np.sort(top[row])
        supports.setdefault(support.tobytes(), support)
    return list(supports.values())


def _products(model: QuadraticModel, X: Vector) -> tuple[Vector, Vector]:
    """xᵀVx and Vx for the rows x of X."""
    product = -0.5 * model.H.times(X)
    return np.einsum("ij,ij->i", X, product), product
