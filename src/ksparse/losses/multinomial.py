"""Multinomial logistic loss: several classes by the same few features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ksparse.data.model import QuadraticModel, Symmetric
from ksparse.data.products import dense
from ksparse.losses.by_rows import ByRows, Wide
from ksparse.losses.softmax import SoftmaxWide, softmax
from ksparse.util.arrays import Array, Matrix, Vector, like, namespace, to_float64, to_numpy

MODELLED = 2048  # entries of x up to which H is formed


class Multinomial(ByRows):
    """Σᵢ wᵢ (log Σ_c exp Z_ic − Z_iyᵢ) with Z = AX, one column of X per class; k counts rows of X: the features that all classes share.

    The symmetric form: every class has a column, and what is added to all columns of a row changes no probability. With a ridge the columns
    of the answer add up to 0. x holds X row by row: `loss.matrix(result.x)` is X.

    Parameters
    ----------
    A : array, scipy.sparse, data by blocks, or any object with shape, @ and .T
        The data, one row per observation; its dtype and device are those of x.
    y : array-like
        The class of each row: any labels.
    sample_weight : array-like or None, default=None
        One weight per row, at or above 0.
    ridge : float or array-like, default=0.0
        ρ, one number or one per feature: adds ½ Σⱼ ρⱼ‖Xⱼ‖². Where k features separate the classes there is no minimum without.
    classes : array-like or None, default=None
        The labels in the order of X's columns; None for those of y, sorted.

    Raises
    ------
    ValueError, TypeError
        If the data are not finite, do not fit each other, or are no numbers; if there are fewer than two classes, or a label is none of
        them; the message names the argument.

    See Also
    --------
    Logistic : Two classes, with one coefficient per feature.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((120, 15))
    >>> y = np.argmax(A[:, [3, 8]] @ rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((120, 3)), axis=1)
    >>> loss = ks.Multinomial(A, y, ridge=0.1)
    >>> np.flatnonzero(loss.matrix(ks.minimize(loss, 2).x).any(axis=1))
    array([3, 8])
    """

    tested = True
    steepest = 0.5  # Böhning's bound of diag(p) − ppᵀ
    _data: ClassVar[tuple[str, ...]] = (*ByRows._data, "Y")

    def __init__(self, A: Matrix, y: Any, sample_weight: Any = None, ridge: Any = 0.0, classes: Any = None) -> None:
        labels = to_numpy(y) if hasattr(y, "ndim") else np.asarray(y)
        if labels.ndim != 1:
            raise ValueError(f"y must be a vector of labels, got shape {labels.shape}")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y must hold labels, but it contains NaN or inf")
        self.classes = np.unique(labels) if classes is None else np.asarray(classes)
        if len(self.classes) < 2 or len(np.unique(self.classes)) < len(self.classes):
            what = "y" if classes is None else "classes"
            raise ValueError(f"{what} must hold at least two classes, each once in classes, got {self.classes}")
        super().__init__(A, len(self.classes), sample_weight, ridge)
        if len(labels) != self.A.shape[0]:
            raise ValueError(f"y must have length {self.A.shape[0]}, got {len(labels)}")
        is_in = labels[:, None] == self.classes
        if not is_in.any(axis=1).all():
            raise ValueError(f"y holds {labels[~is_in.any(axis=1)][0]!r}, which is none of the classes {self.classes}")
        self.Y = like(is_in.astype(float), self.kind)

    def fit_of(self, image: Array) -> float:
        xp = namespace(image)
        top = xp.max(image, axis=1, keepdims=True)
        each = xp.log(xp.sum(xp.exp(image - top), axis=1, keepdims=True)) + top - xp.sum(self.Y * image, axis=1, keepdims=True)
        return float(xp.sum(self._weighted(each)))

    def slope_of(self, image: Array) -> Array:
        return self._weighted(softmax(image) - self.Y)

    def bent(self, image: Array, D: Array) -> float:
        xp, P = namespace(image), softmax(image)
        mean = xp.sum(P * D, axis=1, keepdims=True)
        return float(xp.sum(self._weighted(P * (D - mean) ** 2)))

    def model_at(self, x: Vector) -> QuadraticModel | None:
        if self.opaque or (self.n or 0) > MODELLED:
            return None
        image, wide = self.image(x), self._softmax
        H = wide.hessian(dense(self.design.columns(np.arange(self.features))), softmax(self._sheet(image)), wide.ridge)
        gradient = to_float64(self.gradient_at(x, image))
        return QuadraticModel.at(Symmetric(H), x, H @ x, self.value_at(x, image), gradient)

    def wide(self) -> Wide:
        return self._softmax

    @property
    def _softmax(self) -> SoftmaxWide:
        weight, ridge = (None if part is None else to_float64(part) for part in (self.weight, self.ridge))
        return SoftmaxWide(self.design, to_float64(self.Y), weight, np.zeros(self.features) if ridge is None else ridge)
