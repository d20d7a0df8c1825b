"""The problem of a batch, min ½xᵀGx − rᵀx over signs with at most k nonzeros for one G and many r, and its raw data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ksparse.batch.kernel import INDEPENDENCE_TOL, MIN_RELATIVE_GAIN, ROUNDING_TOL
from ksparse.data import design_of
from ksparse.util.arrays import Vector

PERTURBATIONS = 26  # number of perturbations of each right-hand side (chosen on benchmarks/batches.py)
MAX_EMPTIED = 3  # slots emptied in one perturbation before the support is widened (batches.py)
SLOPE_TOL = 1e-13  # relative to ‖b‖: a smaller slope along a column of length 1 is rounding
SHARE_TOL = 1e-12  # relative to a column's squares: of a smaller share the Gram matrix gives no correct digit
COLUMNS_PER_CHUNK = 256
LIKELY_GAIN = 0.25  # relative to the objective: chance alone seldom gains as much
REFINEMENTS = 2  # steps from the residual of the raw data


@dataclass(frozen=True)
class BatchProblem:
    """G with a diagonal of ones, a mask of the variables that may not be negative, and k.

    Rows and columns n … n + 2k − 1 of G are those of the identity: a support holds one of them in each empty slot.
    """

    G: Vector
    signed: Vector
    k: int
    hash_keys: Vector  # random numbers; their XOR over a support is its hash (Zobrist), whatever the order of its slots

    @classmethod
    def of(cls, gram: Vector, signed: Vector, k: int) -> BatchProblem:
        """Return the problem of a Gram matrix with ones on its diagonal."""
        n = len(gram)
        G = np.eye(n + 2 * k)
        G[:n, :n] = gram
        keys = np.random.default_rng(0).integers(1, 2**62, n + 2 * k)
        keys[n:] = 0
        return cls(G, np.append(signed, np.zeros(2 * k, dtype=bool)), k, keys)

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.G) - 2 * self.k

    def empty_supports(self, count: int) -> Vector:
        """Return supports whose slots are all empty."""
        return np.tile(np.arange(self.n, self.n + self.k), (count, 1))

    def perturbations(self, unit: int, seed: int) -> Vector:
        """Return one perturbation per row: whether the support is widened to 2k, then the slots to empty, −1 for none.

        The first unit of effort widens after some slots are emptied, the second only fills them again, later ones draw
        at random. If there are more sets of slots than PERTURBATIONS, draw some.
        """
        size = min(MAX_EMPTIED, self.k)
        counts = range(unit > 0, size + 1) if unit < 2 and self.k <= PERTURBATIONS else range(0)
        slots = [s for few in counts for s in combinations(range(self.k), few)]
        if not 0 < len(slots) <= PERTURBATIONS:
            rng, size, count = np.random.default_rng([seed, unit]), min(max(size, self.k // 2), self.k), PERTURBATIONS
            sizes = rng.integers(1, size + 1, count - (unit == 0))
            sizes = np.append(0, sizes) if unit == 0 else sizes
            slots = [tuple(int(s) for s in rng.choice(self.k, few, replace=False)) for few in sizes]
        return np.array([[unit % 2 == 0, *s, *[-1] * (size - len(s))] for s in slots], dtype=np.int64)


@dataclass(frozen=True)
class Incumbents:
    """The best support of each right-hand side so far, updated in place."""

    support: Vector  # (count, k), empty slots at n and beyond
    x: Vector  # (count, k)
    value: Vector  # ½xᵀGx − rᵀx
    share: Vector  # least share of a column that is independent of the rest of the support; 0 if unknown

    @classmethod
    def zero(cls, problem: BatchProblem, count: int) -> Incumbents:
        """Return x = 0 for all."""
        return cls(problem.empty_supports(count), np.zeros((count, problem.k)), np.zeros(count), np.zeros(count))

    def rows(self, part: slice) -> Incumbents:
        """Return a view of some right-hand sides."""
        return Incumbents(self.support[part], self.x[part], self.value[part], self.share[part])


@dataclass(frozen=True)
class BatchData:
    """½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ² on the usable columns, turned so that a sign constraint is always x ≥ 0."""

    A: Any  # float64, dense or scipy.sparse
    weight: Vector | None  # w
    ridge: Vector  # one ρ per column
    columns: Vector  # index of each column in the user's A
    turn: Vector  # −1 for columns whose coefficient may not be positive, else 1
    size: Vector  # square root of the diagonal of the Gram matrix
    problem: BatchProblem

    @classmethod
    def of(cls, A: Any, weight: Vector | None, ridge: Vector, lower: Vector, upper: Vector, k: int) -> BatchData | None:
        """Return the shared data, or None if no column is usable. `lower` and `upper` are 0 or infinite."""
        design = design_of(A)
        columns = np.flatnonzero((lower < upper) & (design.column_square_sums(weight) > 0))
        if not columns.size:
            return None
        turn, ridge = np.where(upper[columns] == 0, -1.0, 1.0), ridge[columns]
        gram = design.gram(columns, weight)[:, columns] + np.diag(ridge)
        size = np.sqrt(np.diag(gram))
        gram = gram * np.outer(turn / size, turn / size)
        np.fill_diagonal(gram, 1.0)
        signed = (lower[columns] == 0) | (upper[columns] == 0)
        problem = BatchProblem.of(gram, signed, min(k, columns.size))
        return cls(design.columns(columns), weight, ridge, columns, turn, size, problem)

    def weighted(self, B: Vector) -> Vector:
        """Return the rows of B times w."""
        return B if self.weight is None else self.weight[:, None] * B

    def linear_terms(self, B: Vector) -> tuple[Vector, Vector]:
        """Return r = Aᵀb of each right-hand side, one per row and 0 for each empty slot, and ½‖b‖²."""
        B = np.asarray(B, dtype=np.float64)
        R, weighted = np.zeros((B.shape[1], len(self.problem.G))), self.weighted(B)
        R[:, : len(self.size)] = (self.A.T @ weighted).T * (self.turn / self.size)
        return R, 0.5 * np.einsum("it,it->t", B, weighted)

    def refine(self, B: Vector, best: Incumbents) -> tuple[Vector, Vector]:
        """Return the x of each right-hand side (a row, by slots) and its stationarity residual, from the raw data."""
        problem, B, S = self.problem, np.asarray(B, dtype=np.float64), best.support
        n, index = problem.n, np.minimum(best.support, problem.n - 1)
        held = problem.n > S
        unit = self.turn[index] / self.size[index]  # from the search's units to the user's
        M = np.linalg.inv(problem.G[S[:, :, None], S[:, None, :]])
        x = np.where(held, best.x, 0.0)
        for step in range(REFINEMENTS + 1):
            X = np.zeros((n, len(S)))
            rows, slots = np.nonzero(held)
            X[index[rows, slots], rows] = (x * unit)[rows, slots]
            slope = self.A.T @ self.weighted(B - self.A @ X) - self.ridge[:, None] * X
            slope = np.where(held, np.take_along_axis(slope.T, index, axis=1) * unit, 0.0)
            if step < REFINEMENTS:
                x = x + np.einsum("bst,bt->bs", M, slope)
                held = held & ~(problem.signed[S] & (x <= 0.0))  # a sign that rounding alone gave
                x = np.where(held, x, 0.0)
        r = np.take_along_axis((self.A.T @ self.weighted(B)).T, index, axis=1)
        scale = np.linalg.norm(np.where(held, r * unit, 0.0), axis=1)
        return x * unit, np.linalg.norm(slope, axis=1) / np.where(scale > 0, scale, 1.0)

    def doubtful(self, B: Vector, best: Incumbents, x: Vector) -> Vector:
        """Return for which right-hand sides the Gram matrix cannot be trusted, given the x that `refine` returns.

        If at most INDEPENDENCE_TOL of a column is independent of others, that share d may be rounding, and the search
        never adds such a column. With its slope q, here from the raw data, it would gain ½q²/d, less the cost of the
        variable that leaves for it. The same holds of two columns that are as near each other: the second gains by its
        difference from the first, and two variables leave.
        """
        problem, n = self.problem, self.problem.n
        doubt, (first, second, apart) = np.zeros(len(x), dtype=bool), self._near_pairs
        rows = np.arange(len(x)) if first.size else np.flatnonzero(best.share <= INDEPENDENCE_TOL)
        if not rows.size:
            return doubt
        S, B, x = best.support[rows], np.asarray(B[:, rows], dtype=np.float64), x[rows]
        held, index = n > S, np.minimum(S, n - 1)
        M, G_S = np.linalg.inv(problem.G[S[:, :, None], S[:, None, :]]), problem.G[S, :n]
        P, m = M @ G_S, 1.0 / np.einsum("bss->bs", M)
        d = 1.0 - np.einsum("bsj,bsj->bj", G_S, P)
        d[np.nonzero(held)[0], S[held]] = 1.0
        X = np.zeros((n, rows.size))
        X[S[held], np.nonzero(held)[0]] = x[held]
        residual = B - self.A @ X
        weighted = self.weighted(residual)
        q = (self.A.T @ weighted - self.ridge[:, None] * X).T * (self.turn / self.size)
        half = 0.5 * np.einsum("it,it->t", B, self.weighted(B))[:, None]
        left = 0.5 * (np.einsum("it,it->t", residual, weighted) + self.ridge @ X**2)[:, None]
        noise = SLOPE_TOL * np.sqrt(2.0 * half)
        row, column = np.nonzero((d <= SHARE_TOL) & (np.abs(q) > noise))
        d[row, column] = self._shares(column, index[row], np.where(held[row], P[row, :, column], 0.0))
        x = np.where(held, x * (self.turn * self.size)[index], 0.0)
        cost = np.minimum(0.5 * x**2 * m, LIKELY_GAIN * left) + MIN_RELATIVE_GAIN * left + ROUNDING_TOL * half

        def gains(slope: Vector, share: Vector) -> Vector:
            """Return what nearly dependent columns would gain, at most what is left."""
            real = (share <= INDEPENDENCE_TOL) & (np.abs(slope) > noise)
            return np.where(real, np.minimum(0.5 * slope**2 / np.maximum(share, 1e-300), left), 0.0)

        found = (m <= INDEPENDENCE_TOL).any(axis=1)
        for s in range(S.shape[1]):
            slope = q + P[:, s] * (x[:, s] * m[:, s])[:, None]
            slope[problem.signed[:n] & (slope < 0.0)] = 0.0
            found |= gains(slope, d + P[:, s] ** 2 * m[:, s, None]).max(axis=1) > cost[:, s]
        for part in np.array_split(np.arange(first.size), 1 + first.size // n) if S.shape[1] > 1 else ():
            i, j = first[part], second[part]
            g = problem.G[i, j]
            one, other = q[:, i] - g * q[:, j], q[:, j] - g * q[:, i]
            other[(problem.signed[i] & (one < 0.0)) | (problem.signed[j] & (other < 0.0))] = 0.0
            gain = gains(other, apart[part])
            gain += np.where(gain > 0.0, 0.5 * q[:, i] ** 2, 0.0)
            found |= gain.max(axis=1, initial=0.0) > np.sort(cost, axis=1)[:, 1]
        doubt[rows] = found
        return doubt

    @cached_property
    def _near_pairs(self) -> tuple[Vector, Vector, Vector]:
        """Pairs of columns nearly ± each other, and the share of the second that is independent of the first."""
        G = self.problem.G[: self.problem.n, : self.problem.n]
        i, j = np.nonzero(np.triu(np.abs(G) >= 1.0 - 0.5 * INDEPENDENCE_TOL, 1))
        return i, j, self._shares(j, i[:, None], G[i, j][:, None])

    def _shares(self, columns: Vector, others: Vector, factors: Vector) -> Vector:
        """Return what remains of the squares of unit columns less combinations of others, from the raw data."""
        unit, shares = self.turn / self.size, np.zeros(len(columns))
        for begin in range(0, len(columns), COLUMNS_PER_CHUNK):
            part = slice(begin, begin + COLUMNS_PER_CHUNK)
            held, taken = columns[part], factors[part] * unit[others[part]]
            rest = design_of(self.A[:, held]).dense() * unit[held]
            for s in range(taken.shape[1]):
                rest -= design_of(self.A[:, others[part, s]]).dense() * taken[:, s]
            shares[part] = np.einsum("it,it->t", rest, self.weighted(rest))
            shares[part] += self.ridge[held] * unit[held] ** 2 + (self.ridge[others[part]] * taken**2).sum(axis=1)
        return shares
