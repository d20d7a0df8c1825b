"""Sparse principal components, min −xᵀVx over a ball: starts, ranked moves, and a proof of swap-optimality.

The value of a support S is −radius²·λ_max(V_SS). A swap of j for i is ranked by the Rayleigh quotient of the best point
in span{x without j, eᵢ}, a 2 × 2 eigenproblem in closed form, for all pairs at once; the best few are confirmed by an
eigensolve. The explained variance after the swap is at most the largest eigenvalue of [[λ_max(S∖j), ‖V_{i,S∖j}‖], [·,
V_ii]].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.data.model import QuadraticModel
from ksparse.numerics.bound import EPS
from ksparse.numerics.eigen import is_positive_definite, leading_eigenvector
from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods import EvaluatingNeighbourhood, Move, indices_by_rank
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector, norm

SWEEPS = 15  # maximum number of power iterations
PROBES = 8  # random products that estimate the lengths of columns
SETTLED = 1e-3  # relative change of the explained variance at which a start has found its support


def random_components(problem: SupportProblem, count: int, rng: np.random.Generator) -> list[Vector]:
    """Return the supports that truncated power iteration reaches from random starts, the best first, each once."""
    return _iterated(problem, rng.standard_normal((count, problem.n)))


def column_components(problem: SupportProblem, screened: int, refined: int, rng: np.random.Generator) -> list[Vector]:
    """Return the supports reached from the k largest entries of columns of V, the best first.

    Columns are screened by their length, which a few random products estimate. The best by xᵀVx are refined.
    """
    model = problem.quadratic
    probes = model.H.times(rng.standard_normal((PROBES, problem.n)))
    length = np.einsum("ij,ij->j", probes, probes)
    length[~problem.allowed] = -1.0
    count = min(screened, int(problem.allowed.sum()))
    columns = np.argpartition(-length, count - 1)[:count]
    X = _truncated(problem, -0.5 * model.rows(columns))
    explained, _ = _products(model, X)
    return _iterated(problem, X[np.argsort(-explained, kind="stable")[:refined]])


def _largest(problem: SupportProblem, product: Vector) -> Vector:
    """Return the indices of the k largest allowed entries of each row, forced ones among them."""
    size = np.abs(product)
    size[:, ~problem.allowed] = -1.0
    size[:, problem.forced] = np.inf
    return np.argpartition(-size, problem.k - 1, axis=1)[:, : problem.k]


def _truncated(problem: SupportProblem, product: Vector) -> Vector:
    """Return the k largest entries of each row as a unit vector."""
    rows, top = np.arange(len(product))[:, None], _largest(problem, product)
    X = np.zeros_like(product)
    X[rows, top] = product[rows, top]
    X /= np.maximum(np.abs(X).max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    return X


def _iterated(problem: SupportProblem, X: Vector) -> list[Vector]:
    """Return the supports where truncated power iterations from the rows of X end, the best first, each once."""
    model, before = problem.quadratic, np.full(len(X), np.inf)
    for _ in range(SWEEPS):
        explained, product = _products(model, X * problem.allowed)
        if (np.abs(explained - before) <= SETTLED * explained).all():
            break
        before = explained
        X = _truncated(problem, product)
    explained, _ = _products(model, X)
    supports: dict[bytes, Vector] = {}
    for support in np.sort(_largest(problem, X), axis=1)[np.argsort(-explained, kind="stable")]:
        supports.setdefault(support.tobytes(), support)
    return list(supports.values())


def _products(model: QuadraticModel, X: Vector) -> tuple[Vector, Vector]:
    """Return xᵀVx and Vx for the rows x of X."""
    product = -0.5 * model.H.times(X)
    return np.einsum("ij,ij->i", X, product), product


class RayleighNeighbourhood(EvaluatingNeighbourhood):
    """Moves ranked by the Rayleigh quotient after them, as differences of explained variance."""

    monotone = True

    def __init__(self, problem: SupportProblem) -> None:
        super().__init__(problem)
        self.model = problem.quadratic
        self.variances = -0.5 * self.model.diagonal

    def _rows(self) -> Vector:
        """Return V[support, :]."""
        return -0.5 * self.model.rows(self.support)

    def add_ranks(self) -> Vector:
        """Return what the best point in span{x, eᵢ} explains beyond x; if x is 0, the variance of i."""
        gains = self.variances.copy()
        if self.at.x.any():
            unit = self.at.x / norm(self.at.x)
            V = self._rows()
            value = float(unit @ V[:, self.support] @ unit)
            gains = larger_eigenvalue(np.full(self.problem.n, value), unit @ V, self.variances) - value
        gains = np.where(self.problem.allowed, np.maximum(gains, 1e-300), 0.0)  # any may enter if there is room
        gains[self.support] = 0.0
        return gains

    def drop_ranks(self) -> Vector:
        return np.where(self.movable, np.square(self.at.x), np.inf)

    def ranked_moves(self, min_gain: float, full: bool) -> Iterator[Move]:
        entering, support = self.problem.inactive(self.support), self.support
        if not self.at.x.any() or not entering.size:
            return
        for place in indices_by_rank(self._quotients(entering).ravel(), -np.inf):
            j, i = divmod(place, entering.size)
            yield Move((int(support[j]),), (int(entering[i]),))

    def _quotients(self, entering: Vector) -> Vector:
        """Return the Rayleigh quotient after each swap; −∞ for forced variables."""
        V, unit, support = self._rows(), self.at.x / norm(self.at.x), self.support
        Vx = unit @ V
        rest = np.maximum(1.0 - unit**2, 1e-300)  # ‖x without j‖²
        a = (unit @ Vx[support] - 2.0 * unit * Vx[support] + unit**2 * np.diag(V[:, support])) / rest
        b = (Vx[entering] - unit[:, None] * V[:, entering]) / np.sqrt(rest)[:, None]
        table = larger_eigenvalue(a[:, None], b, self.variances[entering])
        table[~self.movable] = -np.inf
        return table


def larger_eigenvalue(a: Vector, b: Vector, c: Vector) -> Vector:
    """Return λ_max of [[a, b], [b, c]], entry by entry."""
    half = 0.5 * (a - c)
    return np.asarray(0.5 * (a + c) + np.sqrt(half * half + b * b))


def is_swap_optimal(problem: SupportProblem, at: Candidate) -> bool:
    """Return whether it is proved that no swap improves: by an upper bound, or by a factorisation if that is larger."""
    model, inactive = problem.quadratic, problem.inactive(at.support)
    if (at.support.size < problem.k and inactive.size) or problem.rules.group is not None:
        return False
    if not at.x.any():
        return not ((-0.5 * model.diagonal)[problem.allowed] > 0).any()
    target = at.value - problem.claim_tol(at.value)
    if problem.lower_bound(at.support) < target:
        return False
    V, variances = -0.5 * model.rows(at.support), -0.5 * model.diagonal[inactive]
    scale = float(np.abs(V).max())  # squares may overflow
    squares = (V[:, inactive] / scale) ** 2
    all_squares = squares.sum(axis=0)
    present = (model.constant - target) / float(at.x @ at.x)
    rounding = at.support.size * (8.0 * EPS + model.noise.entry_error) * scale
    undecided: list[Vector] = []
    for j in np.flatnonzero(~np.isin(at.support, problem.forced)):
        others = np.delete(np.arange(at.support.size), j)
        without = _upper_bound(V[np.ix_(others, at.support[others])], at.x[others], rounding) if others.size else 0.0
        coupling = scale * np.sqrt(np.maximum(all_squares - squares[j], 0.0)) + rounding
        bound = larger_eigenvalue(np.full(inactive.size, without), coupling, variances) + rounding
        supports = (np.append(at.support[others], i) for i in inactive[~(bound <= present)])
        undecided += [support for support in supports if problem.allows(support)]
        if 3 * len(undecided) > 2 * problem.settings.proved or problem.expired:
            return False
    least = present - rounding - 8.0 * EPS * at.support.size * present
    for support in undecided:
        W = -0.5 * model.block(support)
        if problem.expired or not is_positive_definite(least * np.eye(len(W)) - W):
            return False
    return True


def _upper_bound(V: Vector, near: Vector, rounding: float) -> float:
    """Return an upper bound of λ_max(V): power iteration guesses it, a Cholesky factorisation proves it."""
    guess = leading_eigenvector(V, near)[0] * (1.0 + 1e-12) + rounding
    proved = is_positive_definite(guess * np.eye(len(V)) - V)
    return (guess if proved else float(np.linalg.eigvalsh(V)[-1])) + rounding
