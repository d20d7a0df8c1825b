"""Classification with at most k features: logistic for two classes, multinomial or one-vs-rest for more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from ksparse.estimator_base import Task, fill_docstrings, to_input_dtype, with_callbacks
from ksparse.linear.base import SparseLinear
from ksparse.linear.problem import LinearFit
from ksparse.util.progress import track


@fill_docstrings()
@dataclass(eq=False, repr=False, kw_only=True)
class SparseClassifier(ClassifierMixin, SparseLinear):
    """Logistic or multinomial regression with at most k features.

    The default has a small ridge penalty: if k features separate the classes, the loss alone has no minimum. With
    alpha=0 the search then stops increasing the coefficients once every row is fitted to rounding.

    Parameters
    ----------
    {k}
    multi_class : {"multinomial", "ovr"}, default="multinomial"
        For more than two classes: "multinomial" fits one model with k features shared by all classes; "ovr" fits a
        logistic model of each class against the rest, with k features each. C, signs, a gap and the paper's methods
        require "ovr".
    {C, positive, negative, class_weight, fit_intercept, standardize}
    alpha : float, default=1e-4
        Ridge penalty, ½·alpha·‖z‖² per row, where z are the coefficients of the scaled columns.
    {forced_in, forced_out, groups, group_limits, requires, method}
    {effort, n_jobs, random_state, gap}
    max_time : float or None, default=None
        Time limit in seconds, with "ovr" for each class; the best solution found so far is kept, with a
        `ConvergenceWarning`.
    {verbose}

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients: one row for two classes, else one per class.
    intercept_ : ndarray
        Intercepts, one per row of `coef_`.
    result_ : Result or list of Result
        Result of the search, in scaled variables; one per class for "ovr".
    {n_iter_, n_features_in_, feature_names_in_}

    See Also
    --------
    SparseClassifierCV : Chooses k.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.breast_cancer()
    >>> model = ks.SparseClassifier(k=2).fit(X, y)
    >>> int(model.get_support().sum()), model.score(X, y) > 0.9
    (2, True)
    """

    k: int = field(default=5, kw_only=False)
    multi_class: str = "multinomial"
    class_weight: Any = None
    alpha: float = 1e-4

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseClassifier:
        """Fit the model.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Class labels.
        {sample_weight}

        Returns
        -------
        SparseClassifier
            The fitted estimator.
        """
        X, y, sample_weight, loss, targets = self._prepared(X, y, sample_weight)
        task = Task(self, X, y)
        problems = (self._problem(X, target, sample_weight, loss) for target in track(targets, "classes"))
        self._keep(X, [self._solve(problem, task.callback) for problem in problems])
        task.end()
        return self

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, str, list[Any]]:
        """Validate the data and set `classes_`; return X, y, weights, the loss and the target of each model.

        A target holds 0 and 1 (logistic) or class numbers (multinomial). Rows of weight 0 do not add classes.
        """
        X, y, sample_weight = self._validated(X, y, sample_weight)
        check_classification_targets(y)
        self.classes_ = np.unique(y if sample_weight is None else np.asarray(y)[sample_weight > 0])
        count = len(self.classes_)
        if count < 2:
            raise ValueError(f"y must hold at least two classes, got {count} class: {self.classes_}")
        sample_weight = self._times_class_weight(y, sample_weight)
        if self.multi_class not in ("multinomial", "ovr"):
            raise ValueError(f'multi_class must be "multinomial" or "ovr", got {self.multi_class!r}')
        targets = [(y == label).astype(float) for label in (self.classes_[1:] if count == 2 else self.classes_)]
        if not self._is_multinomial:
            return X, y, sample_weight, "logistic", targets
        given = {name: getattr(self, name) for name in ("C", "positive", "negative", "gap")}
        given |= {"method": None if self.method == "auto" else self.method}
        for name, value in given.items():
            if value is not None and (not isinstance(value, bool | np.bool_) or value):
                raise ValueError(f'{name} requires multi_class="ovr" for more than two classes, here {count}')
        return X, y, sample_weight, "multinomial", [np.argmax(targets, axis=0).astype(float)]

    @property
    def _is_multinomial(self) -> bool:
        return len(self.classes_) > 2 and self.multi_class == "multinomial"

    def _times_class_weight(self, y: Any, sample_weight: Any) -> Any:
        if self.class_weight is None:
            return sample_weight
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.classes_]
            if unknown:
                known = ", ".join(map(str, self.classes_))
                raise ValueError(f"class_weight holds {unknown[0]!r}, which is not a class; the classes are {known}")
            if min(self.class_weight.values()) < 0:
                raise ValueError(f"class_weight must be >= 0, got {min(self.class_weight.values()):g}")
        elif not isinstance(self.class_weight, str) or self.class_weight != "balanced":
            raise ValueError(f'class_weight must be None, "balanced" or a dict of weights, got {self.class_weight!r}')
        weight = compute_sample_weight(self.class_weight, y)
        return weight if sample_weight is None else weight * sample_weight

    def _keep(self, X: Any, fits: list[LinearFit]) -> None:
        self.coef_ = to_input_dtype(np.vstack([fit.coef for fit in fits]), X, self.C)
        self.intercept_ = to_input_dtype(np.concatenate([np.atleast_1d(fit.intercept) for fit in fits]), X)
        results = [fit.result for fit in fits]
        self.result_ = results[0] if len(results) == 1 else results
        self.n_iter_ = max(1, *(result.nit for result in results))

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the log-odds of the second class; for more classes, a score per class (with "ovr", its log-odds).

        Parameters
        ----------
        {X}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores.
        """
        score = np.asarray(self._linear_score(X))
        return score.ravel() if len(self.classes_) == 2 else score

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Return class probabilities; with "ovr", one-vs-rest probabilities scaled to sum to 1.

        Parameters
        ----------
        {X}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        score = self.decision_function(X)
        if self._is_multinomial:
            return np.asarray(softmax(score, axis=1))
        share = expit(score)
        if share.ndim == 1:
            return np.column_stack([1.0 - share, share])
        total = share.sum(axis=1, keepdims=True)
        uniform = np.full_like(share, 1.0 / share.shape[1])  # if all probabilities underflow
        return np.asarray(np.where(total > 0, share / np.where(total > 0, total, 1.0), uniform))

    def predict_log_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the logarithms of the class probabilities.

        Parameters
        ----------
        {X}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of probabilities.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the most likely class of each row.

        Parameters
        ----------
        {X}

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        score = self.decision_function(X)
        return np.asarray(self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)])
