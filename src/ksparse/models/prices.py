"""Prices and returns told apart."""

from __future__ import annotations

import numpy as np

from ksparse.util.arrays import Vector

PRICE, STEADY = 10.0, 0.05  # the typical price is larger, its typical change from row to row is a smaller part of it
LOSSES = 0.02  # of the entries: with so many below 0 it is no table of prices with mistakes in it
LEVEL = 0.05  # what is always above 0 and smaller may be what a savings account pays


def looks_like_prices(X: Vector) -> bool:
    """Whether a table of returns is more likely one of prices: all above 0, of a size of 10 or more, each row near the one before.

    Returns in percent have losses among them or jump about; what a savings account pays does neither, but is small. Numbers around a
    level change from row to row by twice their variance, prices by far less (von Neumann's ratio).
    """
    return len(X) >= 3 and bool((X > 0).all()) and float(np.median(X)) >= PRICE and _wanders(X)


def told_apart(X: Vector) -> str | None:
    """What a table holds, "prices" or "returns", from its numbers alone; None where they could be either.

    Returns have losses among them. Prices are above 0, and large, or go from row to row by small steps.
    """
    level = float(np.median(X))
    if (X < 0).any():
        return "prices" if (X < 0).mean() < LOSSES and level >= PRICE else "returns"
    return "prices" if level >= PRICE or (level >= LEVEL and len(X) >= 3 and (X > 0).all() and _wanders(X)) else None


def _wanders(X: Vector) -> bool:
    """Whether rows are near the ones before them, and not around a level."""
    changes, spread = np.diff(X, axis=0), np.square(X - X.mean(axis=0)).sum(axis=0)
    moved = spread > 0
    if not moved.any() or np.median(np.abs(changes) / X[1:]) >= STEADY:
        return False
    return bool(np.median(np.square(changes).sum(axis=0)[moved] / spread[moved]) < 1.0)
