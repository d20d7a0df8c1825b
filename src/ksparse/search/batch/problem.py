"""min ½xᵀGx − rᵀx over signs with at most k nonzeros, for one G and many r."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ksparse.search.settings import SearchSettings
from ksparse.util.arrays import Vector


@dataclass(frozen=True)
class BatchProblem:
    """G with a diagonal of ones, who may not be negative, and k; behind the n variables 2k of the identity: empty seats."""

    G: Vector
    signed: Vector
    k: int
    settings: SearchSettings
    least: float = 1e-9  # of what is left of ½‖b‖²: an improvement that is worth a move
    rounding: float = 1e-14  # of ½‖b‖²: what arithmetic on the Gram matrix leaves
    independent: float = 1e-9  # of a column's squares: what must be left of it beside those of the support
    keys: Vector = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, gram: Vector, signed: Vector, k: int, settings: SearchSettings) -> BatchProblem:
        """The problem of a Gram matrix with ones on its diagonal."""
        n = len(gram)
        G = np.eye(n + 2 * k)
        G[:n, :n] = gram
        keys = np.random.default_rng(0).integers(1, 2**62, n + 2 * k)
        keys[n:] = 0
        return cls(G, np.append(signed, np.zeros(2 * k, dtype=bool)), k, settings, keys=keys)

    @property
    def n(self) -> int:
        """The variables."""
        return len(self.G) - 2 * self.k

    def nothing(self, count: int) -> Vector:
        """Supports of empty seats."""
        return np.tile(np.arange(self.n, self.n + self.k), (count, 1))

    def keys_of(self, supports: Vector) -> list[int]:
        """A number for each support that no other is likely to have, whatever the order of its seats."""
        return [int(key) for key in np.bitwise_xor.reduce(self.keys[supports], axis=1)]

    def kicks(self, unit: int, seed: int) -> Vector:
        """One kick per row: whether the support is widened to 2k before it shrinks again, and which seats are emptied first, −1 for none.

        The first unit of effort widens after some seats are emptied, the second fills them alone, others are drawn. Where there are
        more than are wanted, some are drawn.
        """
        most, size = self.settings.batch_kicks, min(self.settings.batch_emptied, self.k)
        seats = (
            [s for few in range(unit > 0, size + 1) for s in combinations(range(self.k), few)]
            if unit < 2 and self.k <= most
            else []
        )
        if not 0 < len(seats) <= most:
            rng, size = np.random.default_rng([seed, unit]), min(max(size, self.k // 2), self.k)
            sizes = np.append(0, rng.integers(1, size + 1, most - 1)) if unit == 0 else rng.integers(1, size + 1, most)
            seats = [tuple(int(s) for s in rng.choice(self.k, few, replace=False)) for few in sizes]
        return np.array([[unit % 2 == 0, *s, *[-1] * (size - len(s))] for s in seats], dtype=np.int64)


@dataclass(frozen=True)
class Best:
    """The best that is known for each right-hand side, written in place."""

    support: Vector  # (count, k), empty seats at n and beyond
    x: Vector  # (count, k)
    value: Vector  # ½xᵀGx − rᵀx
    share: Vector  # the least of a column's squares that is no combination of the support (of a member's: of the others); 0 if not known

    @classmethod
    def nothing(cls, problem: BatchProblem, count: int) -> Best:
        """x = 0 for all."""
        return cls(problem.nothing(count), np.zeros((count, problem.k)), np.zeros(count), np.zeros(count))

    def rows(self, part: slice) -> Best:
        """Those of some right-hand sides, in the same memory."""
        return Best(self.support[part], self.x[part], self.value[part], self.share[part])
