"""Cox's partial likelihood, for lifetimes of which some are cut short."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ksparse.data import Design, Operator, check_data, design_of
from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.data.products import columns, dense, kind_of, largest_gram_eigenvalue
from ksparse.losses.base import Composite, Loss
from ksparse.util.arrays import Array, Matrix, Vector, copy_with, like, namespace, to_float64
from ksparse.util.checks import check_adjoint, check_number, check_squares, check_vector

MODELLED = 4096  # variables up to which H is formed


class Cox(Loss):
    """Σ over deaths i of log Σ exp((Ax)ⱼ) over all j who live at least as long, less (Ax)ᵢ; ties as Breslow has them.

    A positive coefficient is a risk.

    Parameters
    ----------
    A : array, scipy.sparse, or any object with shape, @ and .T
        The data in memory, one row per life; its dtype and device are those of x.
    time : array-like
        When each row died, or was last seen, at or above 0.
    event : array-like
        1 where it died, 0 where it was last seen alive.
    ridge : float, default=0.0
        ρ: adds ½ρ‖x‖².

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are read by blocks; if a time is negative or nobody died; the message
        names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((100, 20))
    >>> life, left = rng.exponential(np.exp(A[:, 7] - A[:, 4])), rng.exponential(2.0, 100)
    >>> ks.minimize(ks.Cox(A, np.minimum(life, left), life <= left), 2).support
    array([4, 7])
    """

    convex = True
    has_hessian = skip_self_check = True
    least = 0.0  # each term's sum holds the term itself
    _data = ("kind", "A")

    def __init__(self, A: Matrix, time: Any, event: Any, ridge: float = 0.0) -> None:
        self.A = check_data(A, "A")
        if isinstance(self.A, Design) and not isinstance(self.A, Operator):
            raise TypeError("A must be in memory for Cox, not read by blocks: its rows are compared with each other")
        check_adjoint(self.A, "A")
        check_squares(self.A, "A")
        self.kind = kind_of(self.A)
        m, self.n = (int(side) for side in self.A.shape)
        time, event = to_float64(check_vector(time, "time", m)), to_float64(check_vector(event, "event", m))
        if time.min() < 0:
            raise ValueError(f"time must be >= 0, got {time.min():g} in row {time.argmin()}")
        if not np.isin(event, (0.0, 1.0)).all():
            raise ValueError("event must hold 0 (last seen alive) or 1 (died)")
        if not event.any():
            raise ValueError("event must hold at least one death")
        self.ridge = check_number(ridge, "ridge", at_least=0)
        self._order = np.argsort(-time, kind="stable")  # the longest lives first: who is at risk are those before
        ends = np.flatnonzero(np.append(np.diff(time[self._order]) != 0, True))  # the last row of each time
        self._last = np.repeat(ends, np.diff(ends, prepend=-1))
        self._died = event[self._order]
        self._deaths = np.bincount(self._last, self._died, minlength=m)  # at the last row of their time

    def image(self, x: Array) -> Array:
        return self.A @ x

    def _risks(self, image: Array) -> tuple[Vector, Vector]:
        """Scores in order, and log Σ exp of those up to each row."""
        score = to_float64(image)[self._order]
        return score, np.logaddexp.accumulate(score)

    def _shares(self, image: Array) -> Vector:
        """Σ over deaths of a row's share in the risk then: the part of each term's slope that is not the dead one's own."""
        score, total = self._risks(image)
        with np.errstate(divide="ignore"):
            each = np.log(self._deaths) - total
        return np.asarray(np.exp(score + np.logaddexp.accumulate(each[::-1])[::-1]))

    def value_at(self, x: Array, image: Array) -> float:
        fit = self._fit(image)
        return fit + 0.5 * self.ridge * float(namespace(x).sum(x * x)) if self.ridge else fit

    def _slope(self, image: Array) -> Vector:
        slope = np.empty(len(self._order))
        slope[self._order] = self._shares(image) - self._died
        return slope

    def gradient_at(self, x: Array, image: Array) -> Array:
        pull = self.A.T @ like(self._slope(image), self.kind)
        return pull + self.ridge * x if self.ridge else pull

    def _means(self, image: Array, V: Vector) -> Vector:
        """The means of the columns of V (rows in order) over who is at risk, at each time of death."""
        score, _ = self._risks(image)
        weight = np.exp(np.maximum(score - score.max(), -700.0))  # curvature only: far below all others it is that of 0
        at = np.flatnonzero(self._deaths)
        return np.asarray((np.cumsum(weight[:, None] * V, axis=0) / np.cumsum(weight)[:, None])[at])

    def _curved(self, image: Array, V: Vector) -> Vector:
        """VᵀH V with H that of the scores; rows of V in order."""
        means, deaths = self._means(image, V), self._deaths[self._deaths > 0]
        return np.asarray(V.T @ (self._shares(image)[:, None] * V) - means.T @ (deaths[:, None] * means))

    def curvature_at(self, x: Array, image: Array, d: Array, image_d: Array) -> float:
        along = to_float64(image_d)[self._order][:, None]
        return float(self._curved(image, along)[0, 0]) + self.ridge * float(namespace(d).sum(d * d))

    def hessian_at(self, x: Array, image: Array) -> np.ndarray[Any, Any]:
        A = to_float64(dense(self.A))[self._order]
        return np.asarray(self._curved(image, A) + self.ridge * np.eye(A.shape[1]))

    def model_at(self, x: Vector) -> QuadraticModel | None:
        if self.hides_columns or (self.n or 0) > MODELLED:
            return None
        image = self.A @ x
        H = self.hessian_at(x, image)
        return QuadraticModel.at(
            Symmetric(H), x, H @ x, self.value_at(x, image), to_float64(self.gradient_at(x, image))
        )

    def composite(self) -> Composite | None:
        if self.hides_columns:
            return None
        return Composite(self.A, self._fit, self._slope, np.full(int(self.A.shape[1]), self.ridge))

    def _fit(self, image: Vector) -> float:
        score, total = self._risks(image)
        return float(self._died @ (total[self._last] - score))

    @property
    def entries(self) -> int:
        """Rows times columns, zeros too."""
        return int(self.A.shape[0] * self.A.shape[1])

    @property
    def hides_columns(self) -> bool:
        """Whether A is an operator with many columns."""
        return design_of(self.A).hides_columns(weighted=True)

    def lipschitz(self) -> float:
        # a variance is at most (max − min)²/4, and that at most half the squares of all
        return 0.5 * float(self._died.sum()) * largest_gram_eigenvalue(self.A, None, self.kind) + self.ridge

    def restrict(self, support: np.ndarray[Any, Any]) -> Self:
        support = np.asarray(support)
        cut: Self = copy_with(self, A=columns(self.A, support), n=int(support.size))
        return cut
