"""Losses of several coefficients per feature: φ(x) = h(AX) + ½ Σⱼ ρⱼ‖Xⱼ‖², X the entries of x with one row per column of A.

k then counts rows of X, the features, and a search goes over them (`wide`); where it cannot, the variables of a row are a group.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ksparse.base.arrays import Array, Matrix, Vector, namespace, replaced, take
from ksparse.base.checks import check_ridge, check_row_weights, check_squares
from ksparse.linalg.designs import Design, check_data, design_of
from ksparse.linalg.matrix import largest_gram_eigenvalue
from ksparse.losses.base import Loss


class ByRows(Loss):
    """φ of AX: a loss is its value, slope and curvature as functions of the image AX, and its bound `steepest` on the latter."""

    convex = has_wide = True
    least = 0.0  # no term is below 0
    steepest: ClassVar[float] = 1.0  # sup of the curvature of h, for weights of 1
    _data: ClassVar[tuple[str, ...]] = ("kind", "A", "weight", "ridge")

    def __init__(self, A: Matrix, width: int, sample_weight: Any = None, ridge: Any = 0.0) -> None:
        self.A = check_data(A, "A")
        self.kind, self.per_feature = self.design.kind, width
        check_squares(self.A, "A")
        m, self.features = (int(side) for side in self.A.shape)
        self.n = self.features * width
        self.weight, self.ridge = check_row_weights(sample_weight, m, self.kind), check_ridge(ridge, self.features, self.kind)

    @abstractmethod
    def fit_of(self, image: Array) -> float:
        """h(AX), with the weights; the image as m × t."""

    @abstractmethod
    def slope_of(self, image: Array) -> Array:
        """Its gradient, m × t, with the weights."""

    @abstractmethod
    def bent(self, image: Array, D: Array) -> float:
        """Its curvature along D, with the weights."""

    @cached_property
    def design(self) -> Design:
        """A, as it is asked for more than products."""
        return design_of(self.A)

    def matrix(self, x: Array) -> Array:
        """x as a matrix, one row per feature and one column per target or class.

        Parameters
        ----------
        x : array of length n
            As `minimize` gives it.

        Returns
        -------
        array of shape (n_features, per_feature)
            The same numbers.
        """
        return namespace(x).reshape(x, (self.features, self.per_feature))

    def _flat(self, X: Array) -> Array:
        return namespace(X).reshape(X, (-1,))

    def _sheet(self, image: Array) -> Array:
        return namespace(image).reshape(image, (-1, self.per_feature))

    def image(self, x: Array) -> Array:
        return self._flat(self.A @ self.matrix(x))

    def _weighted(self, terms: Array) -> Array:
        return terms if self.weight is None else self.weight[:, None] * terms

    def _squares(self, x: Array) -> float:
        """Σⱼ ρⱼ‖Xⱼ‖²."""
        return 0.0 if self.ridge is None else float(namespace(x).sum(self.ridge[:, None] * self.matrix(x) ** 2))

    def value_at(self, x: Array, image: Array) -> float:
        return self.fit_of(self._sheet(image)) + 0.5 * self._squares(x)

    def gradient_at(self, x: Array, image: Array) -> Array:
        pull = self.A.T @ self.slope_of(self._sheet(image))
        return self._flat(pull if self.ridge is None else pull + self.ridge[:, None] * self.matrix(x))

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        return self.bent(self._sheet(image), self._sheet(image_d)) + self._squares(d)

    @property
    def entries(self) -> int:
        """Rows times columns, zeros too."""
        return int(self.A.shape[0] * self.A.shape[1])

    @property
    def passes(self) -> int:
        return getattr(self.A, "passes", 0)

    @property
    def opaque(self) -> bool:
        """Whether A is an operator with many columns."""
        return self.design.hides(weighted=True)

    def lengths(self) -> Vector | float:
        return np.repeat(self.design.lengths(), self.per_feature)

    def lipschitz(self) -> float:
        ridge = 0.0 if self.ridge is None else float(namespace(self.ridge).max(self.ridge))
        return self.steepest * largest_gram_eigenvalue(self.A, self.weight, self.kind) + ridge

    def restrict(self, support: np.ndarray[Any, Any]) -> Loss:
        support = np.asarray(support)
        rows, t = support[:: self.per_feature] // self.per_feature, self.per_feature
        if support.size % t or not np.array_equal(support, (rows[:, None] * t + np.arange(t)).ravel()):
            return super().restrict(support)  # some of a row
        ridge = None if self.ridge is None else take(self.ridge, rows)
        cut: Loss = replaced(self, A=self.design.columns(rows), ridge=ridge, features=int(rows.size), n=int(support.size))
        return cut

    def repeats(self, support: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.arange(len(support))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.A.shape[0]} × {self.features}, {self.per_feature} columns)"
