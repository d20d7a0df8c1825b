"""Good supports, and what can be made of two of them: what they share is likely to be right, what they do not is worth trying anew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ksparse.util.arrays import Vector


class Elite:
    """The best local optima so far, and supports made of two of them."""

    def __init__(self, most: int = 6) -> None:
        self.most = most
        self.known: list[tuple[float, tuple[int, ...]]] = []

    def take(self, value: float, support: Vector) -> None:
        """Remember a local optimum, if it is among the best."""
        entry = (value, tuple(sorted(int(i) for i in support)))
        if entry[1] not in (support for _, support in self.known):
            self.known = sorted([*self.known, entry])[: self.most]

    def children(self, k: int, count: int, rng: np.random.Generator) -> Iterator[Vector]:
        """What two have in common, and a choice of what only one of them has."""
        for _ in range(count):
            if len(self.known) < 2:
                return
            one, other = (set(self.known[i][1]) for i in rng.choice(len(self.known), 2, replace=False))
            common, rest = sorted(one & other), sorted(one ^ other)
            size = min(k, max(len(one), len(other)))
            yield np.concatenate([common, rng.permutation(rest)[: size - len(common)]]).astype(np.intp)
