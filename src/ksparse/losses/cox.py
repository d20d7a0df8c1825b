"""Cox's partial likelihood for censored lifetimes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.data import Design, Operator, check_data
from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.data.products import dense
from ksparse.losses.base import DesignLoss
from ksparse.util.arrays import Array, Matrix, Vector, like, to_float64
from ksparse.util.checks import check_adjoint, check_number, check_vector

MODELLED = 4096  # variables up to which H is formed


class Cox(DesignLoss):
    """Σ over deaths i of log Σⱼ exp((Ax)ⱼ) − (Ax)ᵢ, j over the rows at risk: those observed at least as long.

    Ties are treated by Breslow's method. A positive coefficient increases the risk.

    Parameters
    ----------
    A : array, scipy.sparse, or any object with shape, @ and .T
        The data in memory, one row per subject. Its dtype and device are those of x.
    time : array-like
        Time of death or of the last observation of each row, >= 0.
    event : array-like
        1 for a death, 0 for a last observation (censored).
    ridge : float, default=0.0
        ρ: adds ½ρ‖x‖².

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, have incompatible shapes or are read by blocks, a time is negative, or there is no
        death; the message names the argument.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((100, 20))
    >>> life, left = rng.exponential(np.exp(A[:, 7] - A[:, 4])), rng.exponential(2.0, 100)
    >>> ks.minimize(ks.Cox(A, np.minimum(life, left), life <= left), 2).support
    array([4, 7])
    """

    has_hessian = True
    least = 0.0  # the sum in each logarithm contains the term of the death itself
    _data = ("kind", "A", "ridge")

    def __init__(self, A: Matrix, time: Any, event: Any, ridge: float = 0.0) -> None:
        A = check_data(A, "A")
        if isinstance(A, Design) and not isinstance(A, Operator):
            reason = "the loss compares all rows with each other"
            raise TypeError(f"A must be in memory for Cox, not read by blocks: {reason}")
        check_adjoint(A, "A")
        super().__init__(A, None, check_number(ridge, "ridge", at_least=0))
        m = int(self.A.shape[0])
        time, event = to_float64(check_vector(time, "time", m)), to_float64(check_vector(event, "event", m))
        if time.min() < 0:
            raise ValueError(f"time must be >= 0, got {time.min():g} in row {time.argmin()}")
        if not np.isin(event, (0.0, 1.0)).all():
            raise ValueError("event must hold 0 (last seen alive) or 1 (died)")
        if not event.any():
            raise ValueError("event must hold at least one death")
        self._order = np.argsort(-time, kind="stable")  # longest times first: the rows at risk are those before
        ends = np.flatnonzero(np.append(np.diff(time[self._order]) != 0, True))  # the last row of each time
        self._last = np.repeat(ends, np.diff(ends, prepend=-1))
        self._died = event[self._order]
        self._deaths = np.bincount(self._last, self._died, minlength=m)  # at the last row of each time
        # a variance is at most (max − min)²/4, and (max − min)² at most twice the sum of all squares
        self.steepest = 0.5 * float(self._died.sum())

    def _risks(self, image: Array) -> tuple[Vector, Vector]:
        """Return the scores in order, and log Σ exp of the scores up to each row."""
        score = to_float64(image)[self._order]
        return score, np.logaddexp.accumulate(score)

    def _shares(self, image: Array) -> Vector:
        """Return for each row the sum over deaths of the row's share in the risk at that time."""
        score, total = self._risks(image)
        with np.errstate(divide="ignore"):
            each = np.log(self._deaths) - total
        return np.asarray(np.exp(score + np.logaddexp.accumulate(each[::-1])[::-1]))

    def fit_of(self, image: Array) -> float:
        score, total = self._risks(image)
        return float(self._died @ (total[self._last] - score))

    def slope_of(self, image: Array) -> Array:
        slope = np.empty(len(self._order))
        slope[self._order] = self._shares(image) - self._died
        return like(slope, self.kind)

    def _curvature(self, image: Array, V: Vector) -> Vector:
        """Return Vᵀ∇²h(image)V; the rows of V are in order."""
        score, _ = self._risks(image)
        weight = np.exp(np.maximum(score - score.max(), -700.0))  # far below the largest score the weight is 0
        means = (np.cumsum(weight[:, None] * V, axis=0) / np.cumsum(weight)[:, None])[self._deaths > 0]
        deaths = self._deaths[self._deaths > 0]
        return np.asarray(V.T @ (self._shares(image)[:, None] * V) - means.T @ (deaths[:, None] * means))

    def curvature_of(self, image: Array, d: Array) -> float:
        return float(self._curvature(image, to_float64(d)[self._order][:, None])[0, 0])

    def hessian_at(self, x: Array, image: Array) -> Vector:
        H = self._curvature(image, to_float64(dense(self.A))[self._order])
        return H if self.ridge is None else H + np.diag(to_float64(self.ridge))

    def model_at(self, x: Vector) -> QuadraticModel | None:
        if self.hides_columns or (self.n or 0) > MODELLED:
            return None
        image = self.A @ x
        H, gradient = self.hessian_at(x, image), to_float64(self.gradient_at(x, image))
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, image), gradient)
