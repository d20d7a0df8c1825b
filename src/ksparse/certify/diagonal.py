"""The diagonal part D of H that the bound splits off; it decides how good the bound is.

max Σ wᵢdᵢ s.t. H − D ⪰ 0, D ≥ 0 is the dual of min ⟨H, UUᵀ⟩ over rows uᵢ of length √wᵢ, which coordinate descent solves
at a rank of about √(2n) (Burer and Monteiro): uᵢ ← −√wᵢ·gᵢ/‖gᵢ‖ with gᵢ = Σ_{j≠i} Hᵢⱼuⱼ, and dᵢ = (Hᵢᵢ − ‖gᵢ‖/√wᵢ)₊.
The bound is concave in D with supergradient ½xᵢ²(1/zᵢ − 1) at the relaxation's x, z: those are the weights of the next
round, averaged over the rounds.

H − D ⪰ 0 must hold in exact arithmetic: D is shrunk until H − D less a margin has a Cholesky factor. The margin exceeds
what the rounding of the factorisation and of H's entries can hide.
"""

from __future__ import annotations

import math

import numpy as np

from ksparse.certify.program import ScaledProblem
from ksparse.numerics.bound import EPS
from ksparse.numerics.eigen import DECOMPOSITION_SECONDS, is_positive_definite
from ksparse.util.arrays import Vector
from ksparse.util.compiled import Numbers, Table, compiled
from ksparse.util.resources import pause, require_time

SWEEPS = 30  # maximum number of sweeps of coordinate descent, which starts at the rows of the last round
SETTLED = 1e-8  # relative to Σw: the descent ends if the rows move less
MIN_WEIGHT = 1e-4  # relative to the largest
MIN_WEIGHT_LIMITED = 0.3  # under limits, where the root says less of the nodes below it (benchmarks/rules.py)
SHRINK = 1.0 - 1e-6  # factor of D, so that H − D stays positive semidefinite after rounding
MAX_TRIES = 6
SLOW = 1000  # number of variables from which the descent takes seconds
COMPILED = 50  # variables from which compilation pays for a proof


def margin_of(problem: ScaledProblem) -> float:
    """Return a bound on the rounding of Cholesky (Higham 2002, Theorem 10.3) and of H's entries."""
    n = problem.n
    return n * (problem.noise.entry_error + 4.0 * EPS) + 2.0 * (n + 2) * n * EPS


def positive(H: Vector, d: Vector, margin: float) -> bool:
    """Return whether H − D has no eigenvalue below 0, with a margin for rounding."""
    return is_positive_definite(H - np.diag(d + margin))


def scaled_to_psd(problem: ScaledProblem, d: Vector) -> Vector:
    """Return the largest multiple of d, at most d itself, for which H − D is provably positive semidefinite.

    If there is none, D is 0 for a Gram matrix H, else as little below 0 as makes it provable: then only bounds can hold
    x. A matrix that is the data may be indefinite by its own rounding, and is taken as it is.
    """
    H, margin = problem.H, margin_of(problem)
    for _ in range(MAX_TRIES):
        if positive(H, d, margin):
            return d
        try:
            L = np.linalg.cholesky(H - 2.0 * margin * np.eye(d.size))
        except np.linalg.LinAlgError:
            break
        pause()
        X = np.linalg.solve(L, np.diag(np.sqrt(d)))
        d = d * min(SHRINK, SHRINK / float(_eigenvalues(X @ X.T)[-1]))
    if problem.noise.is_gram:
        return np.zeros(d.size)
    below = 2.0 * margin + max(0.0, -float(_eigenvalues(H)[0]))
    while not positive(H, np.full(d.size, -below), margin):
        below *= 2.0
    return np.full(d.size, -below)


def _eigenvalues(M: Vector) -> Vector:
    """Return all eigenvalues in ascending order; raise `OutOfTimeError` if there is not even time for half of them."""
    pause()
    require_time(0.5 * DECOMPOSITION_SECONDS * len(M) ** 3)
    return np.linalg.eigvalsh(M)


class DiagonalSplit:
    """A sequence of D for changing weights."""

    def __init__(self, problem: ScaledProblem, seed: int = 0) -> None:
        self.problem = problem
        rank = math.ceil(math.sqrt(2 * problem.n)) + 1
        self._U = np.random.default_rng(seed).standard_normal((problem.n, rank))
        self._weights, self._rounds = np.zeros(problem.n), 0

    def update_weights(self, x: Vector, z: Vector) -> None:
        """Average in the supergradient where the relaxation ended."""
        gain = np.where(z > 1e-6, x * x * (1.0 / np.maximum(z, 1e-9) - 1.0), 0.0)
        self._rounds += 1
        self._weights += (gain / max(float(gain.max()), 1e-300) - self._weights) / self._rounds

    def solve(self) -> Vector:
        """Return a safe D of nearly the largest Σwᵢdᵢ; first, if n is large, a multiple of I, which suits a ridge."""
        H, n = self.problem.H, self.problem.n
        if not self._rounds and n >= SLOW:
            return scaled_to_psd(self.problem, np.full(n, SHRINK * self.problem.min_eigenvalue))
        min_weight = MIN_WEIGHT if self.problem.supports.limits is None else MIN_WEIGHT_LIMITED
        w = self._weights + min_weight if self._rounds else np.ones(n)
        root, U = np.sqrt(w), self._U
        U *= (root / np.linalg.norm(U, axis=1))[:, None]
        descend = compiled(_sweeps_compiled) if n >= COMPILED else _sweeps
        rows, settled, moved = np.ascontiguousarray(H), SETTLED * float(w.sum()), np.full(1, np.inf)
        together = SWEEPS if n < SLOW else 1
        for _ in range(0, SWEEPS, together):
            descend(rows, U, root, together, settled, moved)
            pause()
            if moved[0] < settled:
                break
        g = H @ U - np.diag(H)[:, None] * U
        return scaled_to_psd(self.problem, np.maximum(np.diag(H) - np.linalg.norm(g, axis=1) / root, 0.0))


def _sweeps(H: Vector, U: Vector, root: Vector, sweeps: int, settled: float, last: Vector) -> None:
    """Descend on the rows of U, in place, until they settle; set `last` to how far the last sweep moved them."""
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(U)):
            g = H[i] @ U - H[i, i] * U[i]
            size = math.sqrt(g @ g)
            if size > 0:
                u = g * (-root[i] / size)
                moved += float(((u - U[i]) ** 2).sum())
                U[i] = u
        last[0] = moved
        if moved < settled:
            break


def _sweeps_compiled(H: Table, U: Table, root: Numbers, sweeps: int, settled: float, last: Numbers) -> None:
    """Compute what `_sweeps` does; products of slices would take longer to compile."""
    n, rank = U.shape
    g = np.empty(rank)
    for _ in range(sweeps):
        moved = 0.0
        for i in range(n):
            for r in range(rank):
                g[r] = -H[i, i] * U[i, r]
            for j in range(n):
                h = H[i, j]
                for r in range(rank):
                    g[r] += h * U[j, r]
            size = 0.0
            for r in range(rank):
                size += g[r] * g[r]
            size = math.sqrt(size)
            if size > 0:
                for r in range(rank):
                    u = g[r] * (-root[i] / size)
                    moved += (u - U[i, r]) ** 2
                    U[i, r] = u
        last[0] = moved
        if moved < settled:
            break
