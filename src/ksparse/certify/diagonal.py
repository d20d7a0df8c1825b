"""The diagonal part D of H that the bound splits off: what decides how good it is.

max Σ wᵢdᵢ s.t. H − D ⪰ 0, D ≥ 0 is the dual of min ⟨H, UUᵀ⟩ over rows uᵢ of length √wᵢ, which coordinate descent solves
at a rank of about √(2n) (Burer and Monteiro): uᵢ ← −√wᵢ·gᵢ/‖gᵢ‖ with gᵢ = Σ_{j≠i} Hᵢⱼuⱼ, and dᵢ = (Hᵢᵢ − ‖gᵢ‖/√wᵢ)₊.
The bound is concave in D with supergradient ½xᵢ²(1/zᵢ − 1) at the relaxation's x, z: those are the weights of the next
round, averaged over the rounds.

H − D ⪰ 0 must hold in truth and not only in arithmetic: D is shrunk until a Cholesky factor of H − D less a margin
exists. The margin is more than the factorisation itself and what was lost in H's entries can hide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ksparse.certify.program import Program
from ksparse.numerics.bound import EPS
from ksparse.util.arrays import Vector
from ksparse.util.compiled import compiled
from ksparse.util.resources import pause

SWEEPS = 30  # of coordinate descent, at most: the rows are those of the last round to begin with
STILL = 1e-8  # of Σw: rows that move less have settled
LIGHTEST = 1e-4  # a weight, beside the largest
LIGHTEST_LIMITED = 0.3  # the same under limits, whose root says less of what comes below it (benchmarks/rules.py)
SHRINK = 1.0 - 1e-6  # of D, below the largest multiple that is safe
TRIES = 6
MANY = 1000  # variables from which the descent takes seconds
COMPILED = 50  # variables from which a proof is worth a compiler's second


def margin_of(program: Program) -> float:
    """What the least eigenvalue of H − D must exceed: for Cholesky's own rounding (Higham 2002, Theorem 10.3) and that of H's entries."""
    n = program.n
    return n * (program.noise.entry_error + 4.0 * EPS) + 2.0 * (n + 2) * n * EPS


def positive(H: Vector, d: Vector, margin: float) -> bool:
    """Whether H − D has no eigenvalue below 0, with a margin for rounding."""
    try:
        np.linalg.cholesky(H - np.diag(d + margin))
    except np.linalg.LinAlgError:
        return False
    return True


def safe(program: Program, d: Vector) -> Vector:
    """The largest multiple of d, at most d itself, that leaves H − D positive semidefinite for certain.

    Where none does D is 0 if H is a Gram matrix, else as little below 0 as makes it certain: then only bounds can hold
    x. A matrix that is the data may be indefinite by its own rounding, and is taken as it is.
    """
    H, margin = program.H, margin_of(program)
    for _ in range(TRIES):
        if positive(H, d, margin):
            return d
        try:
            L = np.linalg.cholesky(H - 2.0 * margin * np.eye(d.size))
        except np.linalg.LinAlgError:
            break
        pause()
        X = np.linalg.solve(L, np.diag(np.sqrt(d)))
        pause()
        d = d * min(SHRINK, SHRINK / float(np.linalg.eigvalsh(X @ X.T)[-1]))
    if program.noise.is_gram:
        return np.zeros(d.size)
    pause()
    below = 2.0 * margin + max(0.0, -float(np.linalg.eigvalsh(H)[0]))
    while not positive(H, np.full(d.size, -below), margin):
        below *= 2.0
    return np.full(d.size, -below)


class Diagonals:
    """One D after the other, each for other weights."""

    def __init__(self, program: Program, seed: int = 0) -> None:
        self.program = program
        rank = math.ceil(math.sqrt(2 * program.n)) + 1
        self._U = np.random.default_rng(seed).standard_normal((program.n, rank))
        self._weights, self._rounds = np.zeros(program.n), 0

    def weigh(self, x: Vector, z: Vector) -> None:
        """Take in where the relaxation ended."""
        gain = np.where(z > 1e-6, x * x * (1.0 / np.maximum(z, 1e-9) - 1.0), 0.0)
        self._rounds += 1
        self._weights += (gain / max(float(gain.max()), 1e-300) - self._weights) / self._rounds

    def best(self) -> Vector:
        """The D of the largest Σwᵢdᵢ, nearly, and safe; of many variables first the same for all, which a ridge makes good at once."""
        H = self.program.H
        if not self._rounds and len(H) >= MANY:
            return safe(self.program, np.full(len(H), SHRINK * self.program.least))
        lightest = LIGHTEST if self.program.limits is None else LIGHTEST_LIMITED
        w = self._weights + lightest if self._rounds else np.ones(self.program.n)
        root, U = np.sqrt(w), self._U
        U *= (root / np.linalg.norm(U, axis=1))[:, None]
        descend = compiled(_sweeps) if len(U) >= COMPILED else _sweeps
        rows, still, moved = np.ascontiguousarray(H), STILL * float(w.sum()), np.full(1, np.inf)
        together = SWEEPS if len(U) < MANY else 1
        for _ in range(0, SWEEPS, together):
            descend(rows, U, root, together, still, moved)
            pause()
            if moved[0] < still:
                break
        g = H @ U - np.diag(H)[:, None] * U
        return safe(self.program, np.maximum(np.diag(H) - np.linalg.norm(g, axis=1) / root, 0.0))


def _sweeps(H: Any, U: Any, root: Any, sweeps: int, still: float, last: Any) -> None:
    """Coordinate descent on the rows of U, in place, until they are still; `last` is set to how far the last sweep moved them."""
    n, rank = U.shape
    g = np.zeros(rank)
    for _ in range(sweeps):
        moved = 0.0
        for i in range(n):
            g[:] = H[i] @ U
            g -= H[i, i] * U[i]
            size = math.sqrt(g @ g)
            if size > 0:
                for j in range(rank):
                    u = g[j] * (-root[i] / size)
                    moved += (u - U[i, j]) ** 2
                    U[i, j] = u
        last[0] = moved
        if moved < still:
            break
