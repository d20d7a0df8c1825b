"""Whether a table of returns is one of prices."""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector

PRICE, STEADY = 10.0, 0.05  # the typical price is larger, its typical change from row to row is a smaller part of it


def looks_like_prices(X: Vector) -> bool:
    """Whether a table of returns is more likely one of prices: all above 0, of a size of 10 or more, each row near the one before.

    Returns in percent have losses among them or jump about; what a savings account pays does neither, but is small. Numbers around a
    level change from row to row by twice their variance, prices by far less (von Neumann's ratio).
    """
    if len(X) < 3 or not (X > 0).all() or np.median(X) < PRICE:
        return False
    changes, spread = np.diff(X, axis=0), np.square(X - X.mean(axis=0)).sum(axis=0)
    moved = spread > 0
    if not moved.any() or np.median(np.abs(changes) / X[1:]) >= STEADY:
        return False
    return bool(np.median(np.square(changes).sum(axis=0)[moved] / spread[moved]) < 1.0)
