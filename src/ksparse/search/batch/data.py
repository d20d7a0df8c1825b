"""The data that a batch shares: A, its Gram matrix once, and what a block of right-hand sides asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ksparse.data import design_of
from ksparse.search.batch.problem import BatchProblem, Best
from ksparse.search.settings import SearchSettings
from ksparse.util.arrays import Vector

SLOPE = 1e-13  # of ‖b‖: a slope along a column of length 1 below this is rounding
ROUGH = 1e-12  # of a column's squares: a share that is no more is not known to a digit from the Gram matrix
TOGETHER = 256  # columns that are looked at
SHARE = 0.25  # of what is left of ½‖b‖²: chance alone seldom gains as much
REFINED = 2  # steps from the residual of the raw data: each takes off what arithmetic on the Gram matrix left of the one before


@dataclass(frozen=True)
class BatchData:
    """½ Σ wᵢ((Ax)ᵢ − bᵢ)² + ½ Σ ρⱼxⱼ² over signs: the columns that may be used, turned so that a sign is always x ≥ 0."""

    A: Any  # float64, dense or scipy.sparse
    weight: Vector | None  # w
    ridge: Vector  # one ρ per column
    columns: Vector  # which of the user's each of ours is
    turn: Vector  # −1 for those whose coefficient may not be positive
    size: Vector  # the root of the Gram matrix's diagonal
    problem: BatchProblem

    @classmethod
    def of(
        cls,
        A: Any,
        weight: Vector | None,
        ridge: Vector,
        lower: Vector,
        upper: Vector,
        k: int,
        settings: SearchSettings,
    ) -> BatchData | None:
        """The shared data; None where no column may be used. `lower` and `upper` are 0 or infinite."""
        design = design_of(A)
        columns = np.flatnonzero((lower < upper) & (design.squares(weight) > 0))
        if not columns.size:
            return None
        turn, ridge = np.where(upper[columns] == 0, -1.0, 1.0), ridge[columns]
        gram = design.gram(columns, weight)[:, columns] + np.diag(ridge)
        size = np.sqrt(np.diag(gram))
        gram = gram * np.outer(turn / size, turn / size)
        np.fill_diagonal(gram, 1.0)
        signed = (lower[columns] == 0) | (upper[columns] == 0)
        return cls(
            design.columns(columns),
            weight,
            ridge,
            columns,
            turn,
            size,
            BatchProblem.of(gram, signed, min(k, columns.size), settings),
        )

    def weighted(self, B: Vector) -> Vector:
        """Rows times w."""
        return B if self.weight is None else self.weight[:, None] * B

    def pulls(self, B: Vector) -> tuple[Vector, Vector]:
        """r = Aᵀb of each right-hand side, one per row with a 0 for each empty seat, and ½‖b‖²."""
        B = np.asarray(B, dtype=np.float64)
        R, weighted = np.zeros((B.shape[1], len(self.problem.G))), self.weighted(B)
        R[:, : len(self.size)] = (self.A.T @ weighted).T * (self.turn / self.size)
        return R, 0.5 * np.einsum("it,it->t", B, weighted)

    def refined(self, B: Vector, best: Best) -> tuple[Vector, Vector]:
        """The x of each right-hand side (one per row, by seats) and its stationarity residual, both from the raw data."""
        problem, B, S = self.problem, np.asarray(B, dtype=np.float64), best.support
        n, full = problem.n, np.minimum(best.support, problem.n - 1)
        held = problem.n > S
        unit = self.turn[full] / self.size[full]  # from the search's units to the user's
        M = np.linalg.inv(problem.G[S[:, :, None], S[:, None, :]])
        x = np.where(held, best.x, 0.0)
        for step in range(REFINED + 1):
            X = np.zeros((n, len(S)))
            rows, seats = np.nonzero(held)
            X[full[rows, seats], rows] = (x * unit)[rows, seats]
            slope = self.A.T @ self.weighted(B - self.A @ X) - self.ridge[:, None] * X
            pull = np.where(held, np.take_along_axis(slope.T, full, axis=1) * unit, 0.0)
            if step < REFINED:
                x = x + np.einsum("bst,bt->bs", M, pull)
                held = held & ~(problem.signed[S] & (x <= 0.0))  # a sign that rounding alone gave
                x = np.where(held, x, 0.0)
        scale = np.linalg.norm(
            np.where(held, np.take_along_axis((self.A.T @ self.weighted(B)).T, full, axis=1) * unit, 0.0), axis=1
        )
        return x * unit, np.linalg.norm(pull, axis=1) / np.where(scale > 0, scale, 1.0)

    def doubtful(self, B: Vector, best: Best, x: Vector) -> Vector:
        """Return for which right-hand sides the Gram matrix cannot be trusted, given their answers x as `refined` returns them.

        Where no more than `independent` of a column is no combination of others, that share d may be rounding, and the search takes none
        that is so near the support. With its slope q, here from the raw data, it would gain ½q²/d, less the cost of what leaves for it.
        The same holds of two columns that are so near each other: the second gains by what it differs from the first, and two leave.
        """
        problem, n = self.problem, self.problem.n
        doubt, (first, second, apart) = np.zeros(len(x), dtype=bool), self._twins
        rows = np.arange(len(x)) if first.size else np.flatnonzero(best.share <= problem.independent)
        if not rows.size:
            return doubt
        S, B, x = best.support[rows], np.asarray(B[:, rows], dtype=np.float64), x[rows]
        held, full = n > S, np.minimum(S, n - 1)
        M, G_S = np.linalg.inv(problem.G[S[:, :, None], S[:, None, :]]), problem.G[S, :n]
        P, m = M @ G_S, 1.0 / np.einsum("bss->bs", M)
        d = 1.0 - np.einsum("bsj,bsj->bj", G_S, P)
        d[np.nonzero(held)[0], S[held]] = 1.0
        X = np.zeros((n, rows.size))
        X[S[held], np.nonzero(held)[0]] = x[held]
        rest = B - self.A @ X
        pull = self.weighted(rest)
        q = (self.A.T @ pull - self.ridge[:, None] * X).T * (self.turn / self.size)
        half = 0.5 * np.einsum("it,it->t", B, self.weighted(B))[:, None]
        left = 0.5 * (np.einsum("it,it->t", rest, pull) + self.ridge @ X**2)[:, None]
        noise = SLOPE * np.sqrt(2.0 * half)
        row, column = np.nonzero((d <= ROUGH) & (np.abs(q) > noise))
        d[row, column] = self._shares(column, full[row], np.where(held[row], P[row, :, column], 0.0))
        x = np.where(held, x * (self.turn * self.size)[full], 0.0)
        cost = np.minimum(0.5 * x**2 * m, SHARE * left) + problem.least * left + problem.rounding * half

        def gains(slope: Vector, share: Vector) -> Vector:
            """What columns that are so near others would gain, no more than is left."""
            real = (share <= problem.independent) & (np.abs(slope) > noise)
            return np.where(real, np.minimum(0.5 * slope**2 / np.maximum(share, 1e-300), left), 0.0)

        found = (m <= problem.independent).any(axis=1)
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
    def _twins(self) -> tuple[Vector, Vector, Vector]:
        """Pairs of columns of which one is nearly the other, or its negative, and the share of the second that is not the first."""
        G = self.problem.G[: self.problem.n, : self.problem.n]
        i, j = np.nonzero(np.abs(G) >= 1.0 - 0.5 * self.problem.independent)
        i, j = i[i < j], j[i < j]
        return i, j, self._shares(j, i[:, None], G[i, j][:, None])

    def _shares(self, columns: Vector, others: Vector, factors: Vector) -> Vector:
        """From the raw data, what of the squares of columns of length 1 is left when others (a row for each) are taken off."""
        unit, shares = self.turn / self.size, np.zeros(len(columns))
        for begin in range(0, len(columns), TOGETHER):
            part = slice(begin, begin + TOGETHER)
            held, taken = columns[part], factors[part] * unit[others[part]]
            rest = design_of(self.A[:, held]).dense() * unit[held]
            for s in range(taken.shape[1]):
                rest -= design_of(self.A[:, others[part, s]]).dense() * taken[:, s]
            shares[part] = np.einsum("it,it->t", rest, self.weighted(rest))
            shares[part] += self.ridge[held] * unit[held] ** 2 + (self.ridge[others[part]] * taken**2).sum(axis=1)
        return shares
