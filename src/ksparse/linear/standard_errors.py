"""Standard errors of a selected model, by a refit of its features without constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm, t
from sklearn.utils.validation import check_is_fitted

from ksparse.data.products import dense
from ksparse.estimator_base import validate_X
from ksparse.linear.base import SparseLinear
from ksparse.linear.losses import huber_with, make_loss
from ksparse.solve.minimize import minimize
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_number

if TYPE_CHECKING:
    import pandas as pd

LIKELIHOODS = ("logistic", "poisson", "negative_binomial")  # whose curvature is their information


@dataclass(frozen=True)
class Refit:
    """The selected features fitted once more, with nothing asked of them, and how far each coefficient may be off.

    Given the features: that they were selected by the same rows is not in these errors, which are too small for that reason; see
    `selection_stability`. It is what `standard_errors` returns.

    Attributes
    ----------
    names : list of str
        The intercept first, where there is one.
    coef : ndarray
        The refitted coefficients.
    error : ndarray
        Their standard errors.
    freedom : float
        Degrees of freedom of the t distribution; ∞ for the normal one.
    robust : bool
        Whether the errors hold where the model's variance is wrong (sandwich).

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.standard_errors(ks.SparseRegressor(k=2).fit(X, y), X, y)
    >>> found.interval(0.9).shape, found.to_frame().columns.tolist()
    ((3, 2), ['coefficient', 'error', 'p', 'low', 'high'])
    """

    names: list[str]  # the intercept first, where there is one
    coef: Vector
    error: Vector  # standard errors
    freedom: float  # degrees of freedom of the t distribution; ∞ for the normal one
    robust: bool  # whether the errors hold where the model's variance is wrong (sandwich)

    @property
    def p_values(self) -> Vector:
        """Two-sided, of the hypothesis that a coefficient is 0."""
        size = np.abs(self.coef / np.where(self.error > 0, self.error, math.inf))
        return np.asarray(2.0 * (norm.sf(size) if math.isinf(self.freedom) else t.sf(size, self.freedom)))

    def interval(self, level: float = 0.95) -> Vector:
        """A lower and an upper end for each coefficient."""
        share = 0.5 * (1.0 + check_number(level, "level", above=0))
        if share >= 1.0:
            raise ValueError(f"level must be a share below 1, got {level:g}")
        reach = (norm.ppf(share) if math.isinf(self.freedom) else t.ppf(share, self.freedom)) * self.error
        return np.column_stack([self.coef - reach, self.coef + reach])

    def to_frame(self) -> pd.DataFrame:
        """One row per coefficient."""
        import pandas as pd

        low, high = self.interval().T
        columns = {"coefficient": self.coef, "error": self.error, "p": self.p_values, "low": low, "high": high}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="feature"))

    def __repr__(self) -> str:
        table = zip(self.names, self.coef, self.error, self.p_values, strict=True)
        return "\n".join(f"{name:>20} {c:>12.5g} ± {e:<10.3g} p = {p:.3g}" for name, c, e, p in table)


def standard_errors(model: Any, X: Any, y: Any, sample_weight: Any = None, *, robust: bool | None = None) -> Refit:
    """Refit the features of a fitted `SparseRegressor` or binary `SparseClassifier` and say how far each coefficient may be off.

    Parameters
    ----------
    model : SparseRegressor or SparseClassifier
        Fitted, of one target or two classes; those that choose k too.
    X : array-like of shape (n_samples, n_features)
        The table it was fitted to.
    y : array-like of shape (n_samples,)
        The target.
    sample_weight : array-like or None, default=None
        Multiplies the loss of a row.
    robust : bool or None, default=None
        True for sandwich errors, which hold where the variance is not the model's; None for them only where the loss is no likelihood
        (Huber, quantile, Gamma, Tweedie, your own `DataFit`).

    Returns
    -------
    Refit
        Coefficients, errors, p-values and intervals, given the features.

    Raises
    ------
    ValueError, TypeError
        If the model is none of these, has several rows of coefficients or no feature, or its loss does not compare rows with data.

    See Also
    --------
    selection_stability : How sure the selection itself is.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.standard_errors(ks.SparseRegressor(k=2).fit(X, y), X, y)
    >>> found.names, bool((found.p_values < 1e-6).all())
    (['intercept', 'x2', 'x8'], True)
    """
    if not isinstance(model, SparseLinear):
        raise TypeError(f"model must be a fitted SparseRegressor or SparseClassifier, got {type(model).__name__}")
    check_is_fitted(model)
    coef = np.atleast_2d(model.coef_)
    if len(coef) > 1:
        raise ValueError(
            f"model has {len(coef)} rows of coefficients: standard errors are for one target or two classes"
        )
    X = validate_X(model, X, accept_sparse="csc", reset=False)
    classes = getattr(model, "classes_", None)
    loss: Any = "logistic" if classes is not None else model.loss
    target = (np.asarray(y) == classes[1]).astype(float) if classes is not None else np.asarray(y, dtype=float)
    if len(target) != X.shape[0]:
        raise ValueError(f"y must have as many entries as X has rows, {X.shape[0]}, got {len(target)}")
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    support = np.flatnonzero(coef[0])
    names = getattr(model, "feature_names_in_", None)
    labels = [f"x{j}" if names is None else str(names[j]) for j in support]
    D = np.asarray(dense(X[:, support]), dtype=float)
    if model.fit_intercept:
        D, labels = np.column_stack([np.ones(len(D)), D]), ["intercept", *labels]
    if not labels:
        raise ValueError("model has no feature and no intercept: nothing to refit")
    maker = huber_with(model.delta) if loss == "huber" and model.delta is not None else loss
    return _refit(D, target, weight, loss, maker, labels, robust)


def _refit(
    D: Vector, y: Vector, weight: Vector | None, loss: Any, maker: Any, labels: list[str], robust: bool | None
) -> Refit:
    size = np.sqrt(np.mean(D**2, axis=0))  # columns of size 1 for the solve
    size = np.where(size > 0, size, 1.0)
    fitted = make_loss(maker, D / size, y, weight)
    rows = fitted.composite()
    if rows is None:
        raise TypeError(
            f"standard errors need a loss that compares rows with data (such as a ksparse.DataFit), not {type(fitted).__name__}"
        )
    x = np.asarray(minimize(fitted, len(labels)).x, dtype=float)
    image = fitted.image(x)
    H = fitted.with_exact_hessian().hessian_at(x, image)
    bread = np.linalg.pinv(H, hermitian=True)
    named = isinstance(loss, str)
    sandwich = robust if robust is not None else not (named and loss in ("squared", *LIKELIHOODS))
    w = np.ones(len(y)) if weight is None else weight
    free = float(w.sum() if weight is not None and (w == np.round(w)).all() else np.count_nonzero(w)) - len(labels)
    if sandwich:
        scores = rows.slope(image)[:, None] * (D / size)
        covariance = bread @ (scores.T @ scores) @ bread
    else:
        spread = 2.0 * fitted.value(x) / max(free, 1.0) if named and loss == "squared" else 1.0
        covariance = spread * bread
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0)) / size
    exact = named and loss == "squared" and not sandwich
    return Refit(labels, x / size, error, free if exact and free > 0 else math.inf, bool(sandwich))
