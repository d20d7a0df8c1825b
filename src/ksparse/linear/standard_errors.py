"""Standard errors of a selected model, from an unconstrained refit of its features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from ksparse.data.products import dense
from ksparse.estimator_base import validate_X
from ksparse.linear.base import SparseLinear
from ksparse.linear.loss_names import huber_with, make_loss
from ksparse.solve.minimize import minimize
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_number

if TYPE_CHECKING:
    import pandas as pd

LIKELIHOODS = ("logistic", "poisson", "negative_binomial")  # their Hessian is the observed information


@dataclass(frozen=True)
class Refit:
    """Unconstrained refit of the selected features with standard errors, returned by `standard_errors`.

    The errors are conditional on the features. Since the same rows selected them, the errors are too small; see
    `selection_stability`.

    Attributes
    ----------
    names : list of str
        Feature names, after the intercept if there is one.
    coef : ndarray
        Refitted coefficients.
    error : ndarray
        Standard errors.
    freedom : float
        Degrees of freedom of the t distribution; inf for the normal distribution.
    robust : bool
        Whether the errors are sandwich errors, valid if the variance of the model is wrong.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.standard_errors(ks.SparseRegressor(k=2).fit(X, y), X, y)
    >>> found.interval(0.9).shape, found.to_frame().columns.tolist()
    ((3, 2), ['coefficient', 'error', 'p', 'low', 'high'])
    """

    names: list[str]
    coef: Vector
    error: Vector
    freedom: float
    robust: bool

    @property
    def p_values(self) -> Vector:
        """Two-sided p-values of the hypothesis that a coefficient is 0."""
        size = np.abs(self.coef / np.where(self.error > 0, self.error, math.inf))
        return np.asarray(2.0 * t.sf(size, self.freedom))

    def interval(self, level: float = 0.95) -> Vector:
        """Return the lower and upper confidence limits of each coefficient."""
        reach = t.ppf(0.5 * (1.0 + check_number(level, "level", above=0, below=1)), self.freedom) * self.error
        return np.column_stack([self.coef - reach, self.coef + reach])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per coefficient."""
        import pandas as pd

        low, high = self.interval().T
        columns = {"coefficient": self.coef, "error": self.error, "p": self.p_values, "low": low, "high": high}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="feature"))

    def __repr__(self) -> str:
        table = zip(self.names, self.coef, self.error, self.p_values, strict=True)
        return "\n".join(f"{name:>20} {c:>12.5g} ± {e:<10.3g} p = {p:.3g}" for name, c, e, p in table)


def standard_errors(model: Any, X: Any, y: Any, sample_weight: Any = None, *, robust: bool | None = None) -> Refit:
    """Refit the features of a fitted `SparseRegressor` or binary `SparseClassifier` and return standard errors.

    Parameters
    ----------
    model : SparseRegressor or SparseClassifier
        A fitted estimator for one target or two classes; also one that chooses k.
    X : array-like of shape (n_samples, n_features)
        The data the model was fitted to.
    y : array-like of shape (n_samples,)
        Target values.
    sample_weight : array-like or None, default=None
        Weight of each row in the loss.
    robust : bool or None, default=None
        True for sandwich errors, which are valid if the variance of the model is wrong; None uses them only for losses
        that are not likelihoods (Huber, quantile, Gamma, Tweedie, custom `DataFit`).

    Returns
    -------
    Refit
        Coefficients, standard errors, p-values and intervals, conditional on the features.

    Raises
    ------
    ValueError, TypeError
        If the model is of another type, has several rows of coefficients or no feature, or its loss is not a sum over
        rows.

    See Also
    --------
    selection_stability : Stability of the selection itself.

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
        raise ValueError(f"model has {len(coef)} rows of coefficients; standard errors need one target or two classes")
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


def _refit(D: Vector, y: Vector, weight: Any, loss: Any, maker: Any, labels: list[str], robust: bool | None) -> Refit:
    size = np.sqrt(np.mean(D**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    fitted = make_loss(maker, D / size, y, weight)
    rows = fitted.composite()
    if rows is None:
        raise TypeError(f"standard errors need a ksparse.DataFit, a sum over rows, got {type(fitted).__name__}")
    x = np.asarray(minimize(fitted, len(labels)).x, dtype=float)
    image = fitted.image(x)
    bread = np.linalg.pinv(fitted.with_exact_hessian().hessian_at(x, image), hermitian=True)
    sandwich = loss not in ("squared", *LIKELIHOODS) if robust is None else robust
    w = np.ones(len(y)) if weight is None else weight
    free = float(w.sum() if weight is not None and (w == np.round(w)).all() else np.count_nonzero(w)) - len(labels)
    exact = loss == "squared" and not sandwich
    if sandwich:
        scores = rows.slope(image)[:, None] * (D / size)
        covariance = bread @ (scores.T @ scores) @ bread
    else:
        covariance = 2.0 * fitted.value(x) / max(free, 1.0) * bread if exact else bread
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0)) / size
    return Refit(labels, x / size, error, free if exact and free > 0 else math.inf, bool(sandwich))
