"""φ on a support, for losses without a `restrict` of their own."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np

from ksparse.data.products import columns
from ksparse.losses.base import Loss
from ksparse.losses.data_fit import LeastSquares
from ksparse.util.arrays import Array, Vector, embed, take

DIFFERENCES = 100  # variables up to which a Hessian by differences of gradients is worth its cost


def restricted(loss: Loss, support: Vector) -> Loss:
    """Return the loss on a support, with the other variables fixed to 0; squares become `LeastSquares`."""
    if loss.n is None:
        raise ValueError(f"{type(loss).__name__} needs n to be restricted to a support: set self.n in its constructor")
    squares, support = loss.squares(), np.asarray(support)
    if squares is None:
        return Restricted(loss, support, loss.n)
    ridge = 0.0 if squares.ridge is None else take(squares.ridge, support)
    return LeastSquares(columns(squares.A, support), squares.b, squares.weight, ridge)


def without_noise(H: Vector, rounding: float) -> Vector:
    """Return a Hessian by differences of gradients, with eigenvalues that are rounding errors set to 0."""
    values, vectors = np.linalg.eigh(H)
    values[np.abs(values) <= 1e4 * rounding ** (2 / 3) * np.abs(values).max()] = 0.0
    return np.asarray((vectors * values) @ vectors.T)


class Restricted(Loss):
    """A loss evaluated by embedding x: the inner loss gives value and gradient, and the gradient is cut."""

    skip_self_check = False

    def __init__(self, inner: Loss, support: Vector, n: int) -> None:
        self.inner, self.support, self.full = inner, np.asarray(support), n
        self.n = int(self.support.size)
        self.convex, self.kind = inner.convex, inner.kind
        self.forward_cost, self.adjoint_cost = inner.forward_cost, inner.adjoint_cost
        self.curvature_gradients = inner.curvature_gradients
        self.defined_everywhere, self.rounding, self.least = inner.defined_everywhere, inner.rounding, inner.least
        self.is_quadratic = inner.is_quadratic

    def _embed(self, z: Array) -> Array:
        return embed(z, self.support, self.full)

    def image(self, x: Array) -> Array:
        return self.inner.image(self._embed(x))

    def value_at(self, x: Array, image: Array) -> float:
        return self.inner.value_at(self._embed(x), image)

    def gradient_at(self, x: Array, image: Array) -> Array:
        return take(self.inner.gradient_at(self._embed(x), image), self.support)

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return self.inner.curvature_at(self._embed(x), image, self._embed(d), image_d)

    @cached_property
    def has_hessian(self) -> bool:
        """Whether the inner loss has a model, or differences are cheap."""
        return self.support.size <= DIFFERENCES or self.inner.model_at(np.zeros(self.full)) is not None

    @cached_property
    def _block(self) -> Vector | None:
        """∇²φ, if φ is quadratic."""
        model = self.inner.quadratic() if self.is_quadratic else None
        return None if model is None else model.block(self.support)

    def hessian_at(self, x: Array, image: Array) -> Vector:
        """Return ∇²φ(x): a block of the inner loss's model, or else by central differences, 2n gradients."""
        if self._block is not None:
            return self._block
        model = self.inner.model_at(self._embed(x))
        if model is not None:
            return model.block(self.support)
        h = self.rounding ** (1 / 3) * max(1.0, float(np.abs(x).max(initial=0.0)))
        H = np.array([(self.gradient(x + h * e) - self.gradient(x - h * e)) / (2.0 * h) for e in np.eye(x.size)])
        return without_noise((H + H.T) / 2.0, self.rounding)

    def lipschitz(self) -> float:
        """Return the norm of the block if φ is quadratic, else the constant of the inner loss."""
        return self.inner.lipschitz() if self._block is None else float(np.linalg.norm(self._block, 2)) * (1.0 + 1e-12)

    def restrict(self, support: Vector) -> Self:
        return type(self)(self.inner, self.support[support], self.full)

    def as_float64(self) -> Self:
        return type(self)(self.inner.as_float64(), self.support, self.full)
