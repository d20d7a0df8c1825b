"""The leading eigenvector of a small matrix, from a near one."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector, norm

POWER_STEPS = 40
_START = np.random.default_rng(0).standard_normal(1024)


def leading_eigenvector(block: Vector, start: Vector | None) -> tuple[float, Vector]:
    """λ_max and its eigenvector of a positive semidefinite matrix: by power iteration from a near one, where that settles soon."""
    if start is not None and start.any():
        x = start + 1e-3 * np.abs(start).max() * _START[np.arange(start.size) % _START.size]  # not blind to any direction
        x /= norm(x)
        for _ in range(POWER_STEPS):
            y = block @ x
            value = float(x @ y)
            if float(np.abs(y - value * x).max()) <= 1e-12 * abs(value):
                return value, x
            x = y / max(norm(y), 1e-300)
    values, vectors = np.linalg.eigh(block)
    return float(values[-1]), np.asarray(vectors[:, -1])
