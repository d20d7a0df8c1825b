"""Penalties of the fuzzer: the text, and g by its formula."""

from __future__ import annotations

import numpy as np

from .phi import wide


def build_penalty(case, rng):
    """Return the text of the case's penalty, and g as a function of x."""
    lam = float(rng.choice([1e-3, 0.1, 2.0]))
    theta = float(rng.choice([2.5, 3.7]))
    k = case.k
    if case.penalty in ("TopK1", "TopK2"):
        return (
            f"ks.{case.penalty}({lam!r}, {k})",
            lambda x: wide(lam) * _tail(x, k, 1 if case.penalty == "TopK1" else 2),
        )
    if case.penalty in ("L1", "L1MinusL2"):
        less = 1.0 if case.penalty == "L1MinusL2" else 0.0
        return (
            f"ks.{case.penalty}({lam!r})",
            lambda x: wide(lam) * (np.abs(wide(x)).sum() - less * np.sqrt((wide(x) ** 2).sum())),
        )
    return f"ks.{case.penalty}({lam!r}, {theta!r})", lambda x: SEPARABLE[case.penalty](
        np.abs(wide(x)), wide(lam), wide(theta)
    ).sum()


def _tail(x, k, power):
    return (np.sort(np.abs(wide(x)))[: max(0, len(x) - k)] ** power).sum()


def _scad(t, lam, theta):
    bent = lam * t - (t - lam) ** 2 / (2 * (theta - 1))
    return np.where(t <= lam, lam * t, np.where(t <= theta * lam, bent, lam**2 * (theta + 1) / 2))


SEPARABLE = {
    "CappedL1": lambda t, lam, theta: lam * np.minimum(t, theta),
    "LogSum": lambda t, lam, theta: lam * np.log1p(t / theta),
    "SCAD": _scad,
    "MCP": lambda t, lam, theta: np.where(t <= theta * lam, lam * t - t**2 / (2 * theta), theta * lam**2 / 2),
}
