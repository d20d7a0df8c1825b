"""φ by its formula from the raw data, in extended precision, with the derivatives that the twin needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

EPS = {"float64": 2.3e-16, "float32": 1.2e-7}


def wide(x):
    """Convert to extended precision: 64 bits of mantissa, and squares of 1e±200 stay in range."""
    return np.asarray(x, dtype=np.longdouble)


@dataclass(frozen=True)
class Fit:
    """Σ wᵢ h((Ax)ᵢ; bᵢ) + ½ Σ ρⱼxⱼ², h of least squares, logistic, Huber, Poisson or a quantile smoothed by delta."""

    kind: str
    A: np.ndarray
    b: np.ndarray
    weight: np.ndarray
    ridge: np.ndarray
    delta: float = 1.0
    convex: bool = True
    precision: str = "float64"
    tau: float = 0.5

    @property
    def n(self):
        return self.A.shape[1]

    @property
    def quadratic(self):
        return self.kind == "squares"

    def _terms(self, t, b):
        if self.kind == "squares":
            return 0.5 * (t - b) ** 2
        if self.kind == "logistic":
            return np.logaddexp(np.zeros_like(t), -b * t)
        if self.kind == "poisson":
            return self._exp(t) * (1.0 + np.maximum(t - self._cap, 0.0)) - b * t
        if self.kind == "quantile":
            r, width = b - t, wide(self.delta)
            return self.tau * r + width * np.logaddexp(np.zeros_like(t), -r / width)
        size, delta = np.abs(t - b), wide(self.delta)
        return np.where(size <= delta, 0.5 * size**2, delta * size - 0.5 * delta**2)

    @property
    def _cap(self):
        """Return the argument beyond which Poisson's exp continues as its tangent (documented)."""
        return 300.0 if self.precision == "float64" else 40.0

    def _exp(self, t):
        return np.exp(np.minimum(t, self._cap))

    def value(self, x):
        A, b, x = wide(self.A), wide(self.b), wide(x)
        return (wide(self.weight) * self._terms(A @ x, b)).sum() + 0.5 * (wide(self.ridge) * x * x).sum()

    def rounding(self, x):
        """Return the error of a careful evaluation at x: Ax has the rounding errors of its terms."""
        A, b, x = wide(np.abs(self.A)), wide(self.b), wide(x)
        spread = 4.0 * EPS[self.precision] * (A @ np.abs(x) + np.abs(b if self.kind != "logistic" else 0 * b))
        slope = np.abs(self._slope(wide(self.A) @ x, b))
        bend = self._bend(wide(self.A) @ x, b)
        return (wide(self.weight) * (slope * spread + bend * spread**2)).sum() + EPS[self.precision] * np.abs(
            self.value(x)
        )

    @property
    def natural(self):
        """Return the size of φ relative to which an exact fit is small."""
        zero = wide(np.zeros(len(self.b)))
        if self.kind == "poisson":
            b = wide(self.b)
            return (wide(self.weight) * (1.0 + b * np.abs(np.log(np.maximum(b, 1.0))) + b)).sum()
        return (wide(self.weight) * self._terms(zero, wide(self.b))).sum()

    def _slope(self, t, b):
        if self.kind == "squares":
            return t - b
        if self.kind == "logistic":
            return -b / (1.0 + np.exp(np.minimum(b * t, 11000.0)))
        if self.kind == "poisson":
            return self._exp(t) - b
        if self.kind == "quantile":
            return 0.5 * (1.0 + np.tanh(0.5 * (t - b) / self.delta)) - self.tau
        return np.clip(t - b, -self.delta, self.delta)

    def _bend(self, t, b):
        if self.kind == "squares":
            return np.ones_like(t)
        if self.kind == "logistic":
            e = np.exp(-np.abs(t))
            return e / (1.0 + e) ** 2
        if self.kind == "poisson":
            return self._exp(t)
        if self.kind == "quantile":
            return 0.25 / self.delta * (1.0 - np.tanh(0.5 * (t - b) / self.delta) ** 2)
        return np.where(np.abs(t - b) <= self.delta, 1.0, 0.0)

    def gradient(self, x):
        x = wide(x)
        pull = wide(self.weight) * self._slope(wide(self.A) @ x, wide(self.b))
        return np.asarray(wide(self.A).T @ pull + wide(self.ridge) * x, dtype=float)

    def factor(self, x, support, majorant=False):
        """Return M with MᵀM the Hessian on the support, or that of a quadratic majorant where it may vanish."""
        t, b = wide(self.A) @ wide(x), wide(self.b)
        bend = self._bend(t, b)
        if majorant:
            if self.kind == "huber":
                bend = self.delta / np.maximum(np.abs(t - b), self.delta)
            elif self.kind == "quantile":  # Jaakkola and Jordan's bound
                z = np.maximum(np.abs(t - b) / self.delta, 1e-6)
                bend = np.tanh(z / 2.0) / (2.0 * z) / self.delta
            else:
                bend = np.full_like(t, 0.25)
        rows = np.sqrt(wide(self.weight) * bend)[:, None] * wide(self.A)[:, support]
        return np.asarray(np.vstack([rows, np.diag(np.sqrt(wide(self.ridge)))[:, support]]), dtype=float)

    def pieces(self, support):
        """Return M, t, c with φ = ½‖Mz − t‖² + cᵀz on the support, for least squares."""
        root = np.sqrt(wide(self.weight))
        M = np.vstack([root[:, None] * wide(self.A)[:, support], np.diag(np.sqrt(wide(self.ridge)))[:, support]])
        t = np.concatenate([root * wide(self.b), np.zeros(self.n)])
        return np.asarray(M, dtype=float), np.asarray(t, dtype=float), np.zeros(len(support))


@dataclass(frozen=True)
class Form:
    """½xᵀQx + cᵀx with given Q, or with Q = sign·ZᵀZ given by Z."""

    Q: np.ndarray | None
    c: np.ndarray
    Z: np.ndarray | None = None
    sign: float = 1.0
    convex: bool = True
    precision: str = "float64"
    quadratic: bool = True

    @property
    def n(self):
        return len(self.c)

    def matrix(self):
        return self.Q if self.Q is not None else self.sign * (self.Z.T @ self.Z)

    def value(self, x):
        x = wide(x)
        if self.Q is not None:
            return 0.5 * (x @ (wide(self.Q) @ x)) + wide(self.c) @ x
        image = wide(self.Z) @ x
        return 0.5 * self.sign * (image @ image) + wide(self.c) @ x

    def rounding(self, x):
        x = np.abs(wide(x))
        form = x @ (np.abs(wide(self.Q)) @ x) if self.Q is not None else ((np.abs(wide(self.Z)) @ x) ** 2).sum()
        return 1e3 * EPS[self.precision] * (form + np.abs(wide(self.c)) @ x)

    @property
    def natural(self):
        return wide(0.0)

    def gradient(self, x):
        x = wide(x)
        Hx = wide(self.Q) @ x if self.Q is not None else self.sign * (wide(self.Z).T @ (wide(self.Z) @ x))
        return np.asarray(Hx + wide(self.c), dtype=float)

    def hessian(self, support):
        if self.Q is not None:
            return self.Q[np.ix_(support, support)]
        return self.sign * (self.Z[:, support].T @ self.Z[:, support])

    def factor(self, x, support, majorant=False):
        if self.Z is not None:
            return self.Z[:, support]
        return root_of(self.hessian(support))

    def pieces(self, support):
        M = self.factor(None, support)
        return M, np.zeros(len(M)), self.c[support]


@dataclass(frozen=True)
class Smooth:
    """User-defined φ: value, gradient and Hessian as functions."""

    n: int
    f: Callable
    g: Callable
    H: Callable
    convex: bool
    size: Callable = field(default=lambda x: 0.0)  # the sum of its terms' sizes at x
    precision: str = "float64"
    quadratic: bool = False
    natural: float = 0.0

    def value(self, x):
        return self.f(wide(x))

    def rounding(self, x):
        return 1e2 * EPS[self.precision] * (self.size(wide(x)) + np.abs(self.value(x)))

    def gradient(self, x):
        return np.asarray(self.g(wide(x)), dtype=float)

    def factor(self, x, support, majorant=False):
        return root_of(np.asarray(self.H(wide(x)), dtype=float)[np.ix_(support, support)])


def root_of(H):
    """Return M with MᵀM = |H|, equilibrated first so that tiny rows keep their digits."""
    d = np.sqrt(np.abs(np.diag(H)))
    d[d == 0] = d.max(initial=0.0) or 1.0
    values, vectors = np.linalg.eigh(H / d / d[:, None])
    values = np.abs(values)
    values[values <= len(H) * 4e-15 * values.max(initial=0.0)] = 0.0
    M = (np.sqrt(values) * vectors).T * d
    M[:, ~np.abs(H).any(axis=0)] = 0.0  # a variable that H does not see has no column, not one of rounding
    return M
