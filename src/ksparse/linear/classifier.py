"""Classification by at most k features: logistic for two classes, multinomial or one against the rest for several."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from ksparse.estimator_base import Task, to_input_dtype, with_callbacks
from ksparse.linear.base import SparseLinear
from ksparse.linear.problem import LinearFit
from ksparse.util.progress import track


class SparseClassifier(ClassifierMixin, SparseLinear):
    """The best logistic model of the classes by at most k features; of several classes, the multinomial one by k features for all.

    The default has a small ridge: where k features separate the classes, the loss alone has no minimum. With alpha=0 the coefficients then
    stop growing once every row is fitted to rounding.

    Parameters
    ----------
    k : int, default=5
        Features at most, 0 for the intercept alone; more than there are is no restriction, and a warning says so.
    multi_class : {"multinomial", "ovr"}, default="multinomial"
        For more than two classes: one multinomial model whose k features serve all classes; or a logistic model for each class against the
        rest, with k features of its own. C, signs, `gap` and the paper's methods are for the latter.
    C : ConvexSet or None, default=None
        A set for the coefficients, in the units of X, such as `ks.Simplex()`; None for all of space.
    positive : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be negative.
    negative : bool or array-like, default=False
        True, or the features (indices, mask or names) whose coefficient may not be positive.
    class_weight : dict, "balanced" or None, default=None
        Weights by class, times `sample_weight`; "balanced": classes count alike, however many rows they have.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is free and not counted in k.
    standardize : bool, default=True
        Scale the columns for the search; undone in `coef_`. With a C that is more than bounds they stay as they are.
    alpha : float, default=1e-4
        Ridge, ½ alpha ‖z‖² per row, z the coefficients of the scaled columns.
    forced_in : array-like, default=()
        Features (indices, mask or names) that keep a seat.
    forced_out : array-like, default=()
        Features that get none.
    groups : array-like, dict, callable or None, default=None
        A label for each feature, {feature: label} by names or indices, or a function from the names to labels such as `ks.factors("city")`:
        features of one label enter together or not at all, and k counts such groups (see the page on rules). For "auto".
    group_limits : tuple or None, default=None
        (labels, {label: (least, most)}), labels as in groups: how many of a label must and may be chosen. For "auto".
    requires : dict or None, default=None
        {child: parents} by names or indices, with groups by their labels too: a feature is chosen only with its parents. For "auto".
    method : str, default="auto"
        "auto", or one of the paper's methods (see `ks.minimize`).
    effort : int or None, default=None
        Number of independent searches; the best result is kept. None for one, or with max_time as many as fit.
    n_jobs : int or None, default=None
        Threads to run the searches in.
    random_state : int or None, default=None
        Their seed; the same seed gives the same answer, whatever n_jobs.
    gap : float or None, default=None
        Prove, after the search, how good the answer is, until no other can be better by more than this share (0.01 for 1 %); see
        `result_.lower_bound` and `result_.gap`.
    max_time : float or None, default=None
        Seconds, of "ovr" for each class; the best answer so far is kept, with a `ConvergenceWarning`.
    verbose : int, default=0
        Whether to print a table of the search.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        One row for two classes, else one per class.
    intercept_ : ndarray
        One entry per row of `coef_`.
    result_ : Result or list of Result
        The full answer in scaled variables; one per class for "ovr".
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Features that fit has seen.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

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

    def __init__(
        self,
        k: int = 5,
        *,
        multi_class: str = "multinomial",
        C: Any = None,
        positive: Any = False,
        negative: Any = False,
        class_weight: Any = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        alpha: float = 1e-4,
        forced_in: Any = (),
        forced_out: Any = (),
        groups: Any = None,
        group_limits: Any = None,
        requires: Any = None,
        method: str = "auto",
        effort: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        gap: float | None = None,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.multi_class = multi_class
        self.C = C
        self.positive = positive
        self.negative = negative
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.alpha = alpha
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.groups = groups
        self.group_limits = group_limits
        self.requires = requires
        self.method = method
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.gap = gap
        self.max_time = max_time
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseClassifier:
        """Find the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like or None, default=None
            Multiplies the loss of a row.

        Returns
        -------
        SparseClassifier
            Itself, fitted.
        """
        X, y, sample_weight = self._checked(X, y, sample_weight)
        self.classes_, labels = classes_of(y, sample_weight)
        sample_weight = self._by_class(y, sample_weight)
        loss, labels = self._loss(labels)
        task = Task(self, X, y)
        self._keep(
            X,
            [
                self._solve(self._problem(X, target, sample_weight, loss), task.callback)
                for target in track(labels, "classes")
            ],
        )
        task.end()
        return self

    @property
    def _shares_features(self) -> bool:
        """Whether one model has all classes."""
        return len(self.classes_) > 2 and self.multi_class == "multinomial"

    def _loss(self, labels: list[np.ndarray[Any, Any]]) -> tuple[str, list[np.ndarray[Any, Any]]]:
        """The loss, and the target of each model: 0 and 1, or the numbers of all classes."""
        if self.multi_class not in ("multinomial", "ovr"):
            raise ValueError(f'multi_class must be "multinomial" or "ovr", got {self.multi_class!r}')
        if not self._shares_features:
            return "logistic", labels
        asked = {name: getattr(self, name) for name in ("C", "positive", "negative", "gap")}
        asked |= {"method": None if self.method == "auto" else self.method}
        for name, value in asked.items():
            if value is not None and (not isinstance(value, bool | np.bool_) or value):
                raise ValueError(
                    f'{name} needs multi_class="ovr" where there are more than two classes, here {len(self.classes_)}'
                )
        return "multinomial", [np.argmax(labels, axis=0).astype(float)]  # rows of other labels have weight 0

    def _by_class(self, y: Any, sample_weight: Any) -> Any:
        """The weights of the rows times those of their classes."""
        if self.class_weight is None:
            return sample_weight
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.classes_]
            if unknown:
                raise ValueError(
                    f"class_weight holds {unknown[0]!r}, which is not a class: there are {', '.join(map(str, self.classes_))}"
                )
            if min(self.class_weight.values()) < 0:
                raise ValueError(f"class_weight must be >= 0, got {min(self.class_weight.values()):g}")
        elif not isinstance(self.class_weight, str) or self.class_weight != "balanced":
            raise ValueError(
                f'class_weight must be None, "balanced" or a dict of weights by class, got {self.class_weight!r}'
            )
        weight = compute_sample_weight(self.class_weight, y)
        return weight if sample_weight is None else weight * sample_weight

    def _keep(self, X: Any, fits: list[LinearFit]) -> None:
        self.coef_ = to_input_dtype(np.vstack([fit.coef for fit in fits]), X, self.C)
        self.intercept_ = to_input_dtype(np.concatenate([np.atleast_1d(fit.intercept) for fit in fits]), X)
        results = [fit.result for fit in fits]
        self.result_ = results[0] if len(results) == 1 else results
        self.n_iter_ = max(1, *(result.nit for result in results))

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """Log-odds of the second class; of several, the score of every class, for "ovr" its log-odds against the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The scores.
        """
        score = np.asarray(self._score_of(X))
        return score.ravel() if len(self.classes_) == 2 else score

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Probabilities of the classes; for "ovr" the one-against-rest probabilities scaled to sum 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One row per row of X.
        """
        score = self.decision_function(X)
        if self._shares_features:
            return np.asarray(softmax(score, axis=1))
        share = expit(score)
        if share.ndim == 1:
            return np.column_stack([1.0 - share, share])
        total = share.sum(axis=1, keepdims=True)
        even = np.full_like(share, 1.0 / share.shape[1])  # every class refused to the last bit
        return np.asarray(np.where(total > 0, share / np.where(total > 0, total, 1.0), even))

    def predict_log_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Logarithms of the probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One row per row of X.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most likely class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table; sparse, by blocks or on a cluster too.

        Returns
        -------
        ndarray of shape (n_samples,)
            One label per row.
        """
        score = self.decision_function(X)
        return np.asarray(self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)])


def classes_of(y: Any, sample_weight: Any) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """The labels, and what each model is to tell apart as 0 and 1; rows of weight 0 have no say."""
    check_classification_targets(y)
    classes = np.unique(y if sample_weight is None else np.asarray(y)[sample_weight > 0])
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got {len(classes)} class: {classes}")
    targets = classes[1:] if len(classes) == 2 else classes
    return classes, [(y == label).astype(float) for label in targets]
