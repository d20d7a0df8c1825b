"""C by its definition, as bounds, rows, equations and balls, and the relative constraint violation of a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .phi import wide

STRICT = 5e-12  # what the twin's own points may be off by
FEASIBLE = {"float64": 1e-9, "float32": 1e-5}  # what an answer may be off by


@dataclass(frozen=True)
class Region:
    """{x : lower ≤ x ≤ upper, Gx ≤ h, Ex = f, ‖x‖₂ ≤ ball, ‖x‖₁ ≤ diamond}."""

    lower: np.ndarray
    upper: np.ndarray
    G: np.ndarray
    h: np.ndarray
    E: np.ndarray
    f: np.ndarray
    ball: float = np.inf
    diamond: float = np.inf

    @classmethod
    def of(cls, n, lower=-np.inf, upper=np.inf, G=None, h=None, E=None, f=None, ball=np.inf, diamond=np.inf):
        def rows(M, v):
            return (
                (np.zeros((0, n)), np.zeros(0))
                if M is None
                else (np.array(np.atleast_2d(M), float), np.array(np.atleast_1d(v), float))
            )

        low, high = (np.array(np.broadcast_to(np.asarray(side, float), n)) for side in (lower, upper))
        return cls(low, high, *rows(G, h), *rows(E, f), ball, diamond)

    @property
    def n(self):
        return len(self.lower)

    @property
    def polyhedral(self):
        return self.ball == np.inf and self.diamond == np.inf

    @property
    def forced(self):
        """Return the variables that cannot be 0."""
        return np.flatnonzero((self.lower > 0) | (self.upper < 0))

    @property
    def bounded(self):
        """Whether C is clearly bounded."""
        if min(self.ball, self.diamond) < np.inf or (np.isfinite(self.lower).all() and np.isfinite(self.upper).all()):
            return True
        budget = len(self.E) and (np.ptp(self.E, axis=1) == 0).any()
        return bool(budget and (np.isfinite(self.lower).all() or np.isfinite(self.upper).all()))

    def excess(self, x):
        """Return the largest constraint violation, each relative to the size of its terms."""
        x = wide(x)
        size = np.abs(x).max(initial=0.0)
        worst = [wide(0.0)]
        for gap, level in (
            (wide(self.lower) - x, np.maximum(np.abs(wide(self.lower)), size)),
            (x - wide(self.upper), np.maximum(np.abs(wide(self.upper)), size)),
            (wide(self.G) @ x - wide(self.h), np.abs(wide(self.G)) @ np.abs(x) + np.abs(self.h)),
            (np.abs(wide(self.E) @ x - wide(self.f)), np.abs(wide(self.E)) @ np.abs(x) + np.abs(self.f)),
        ):
            broken = gap > 0
            if broken.any():
                worst.append((gap[broken] / level[broken]).max())
        for norm, radius in ((np.sqrt((x * x).sum()), self.ball), (np.abs(x).sum(), self.diamond)):
            if radius < np.inf and norm > radius:
                worst.append((norm - wide(radius)) / wide(radius))
        return float(max(worst))

    def holds(self, x, slack=STRICT):
        return bool(np.isfinite(x).all() and self.excess(x) <= slack)

    def on(self, support):
        """Return the set on a support, other variables at 0; None if a bound forbids that."""
        off = np.setdiff1d(self.forced, support)
        if off.size:
            return None
        return Region(
            self.lower[support],
            self.upper[support],
            self.G[:, support],
            self.h,
            self.E[:, support],
            self.f,
            self.ball,
            self.diamond,
        )

    def floored(self, signs, floor):
        """Return the set with |x| ≥ floor on the side of each sign."""
        low = np.where(signs > 0, np.maximum(self.lower, floor), self.lower)
        high = np.where(signs < 0, np.minimum(self.upper, -floor), self.upper)
        return Region(low, high, self.G, self.h, self.E, self.f, self.ball, self.diamond)
