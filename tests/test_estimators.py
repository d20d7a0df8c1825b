"""The estimators follow scikit-learn's conventions."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from ksparse.datasets import breast_cancer, diabetes
from ksparse.estimators import (
    SparseClassifier,
    SparseClassifierCV,
    SparsePCA,
    SparsePortfolio,
    SparseRegressor,
    SparseRegressorCV,
)

ALL = [
    SparseRegressor(), SparseRegressor(loss="huber"), SparseRegressor(loss="poisson"), SparseRegressor(method="apdca"),
    SparseClassifier(), SparseRegressor(multi_output="common"),
    SparseRegressorCV(cv=3), SparseRegressorCV(criterion="bic"), SparseClassifierCV(ks=[1, 2], cv=2), SparsePCA(),
    SparsePortfolio(),
]  # fmt: skip


@parametrize_with_checks(ALL)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        # the checks' tables are narrow
        warnings.filterwarnings("ignore", ".*is more than the number of (features|assets)")
        check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: str(estimator)[:40])
def test_pickle_clone_and_the_same_answer_twice(estimator):
    X, y, _ = breast_cancer() if "Classifier" in type(estimator).__name__ else diabetes()
    if isinstance(estimator, SparsePortfolio):
        X, y = X / 100.0, None
    first = clone(estimator).fit(X[:120], None if y is None else y[:120])
    second = pickle.loads(pickle.dumps(first))
    third = clone(estimator).set_params(**estimator.get_params()).fit(X[:120], None if y is None else y[:120])
    name = next(name for name in ("coef_", "components_", "weights_") if hasattr(first, name))
    np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(getattr(first, name), getattr(third, name))
    assert type(estimator).__name__ in first._repr_html_()
    assert first.n_iter_ >= 1
    assert first.n_features_in_ == X.shape[1]


def test_scikit_learns_callbacks_are_told_and_may_stop(rng):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

    class Recorder:
        def __init__(self, stop_after=None):
            self.begun, self.ended, self.stop_after = 0, 0, stop_after

        def setup(self, estimator, context):
            self.name = context.estimator_name

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1
            return self.stop_after is not None and self.ended >= self.stop_after

        def teardown(self, estimator, context):
            self.down = True

    assert isinstance(Recorder(), callback.FitCallback)
    X, y = rng.standard_normal((60, 100)), rng.standard_normal(60)
    seen = Recorder()
    SparseRegressor(8).set_callbacks(seen).fit(X, y)
    assert seen.name == "SparseRegressor"
    assert seen.begun == seen.ended > 3
    assert seen.down
    stopper = Recorder(stop_after=2)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        model = SparseRegressor(8).set_callbacks(stopper).fit(X, y)
    assert stopper.begun < seen.begun
    assert np.count_nonzero(model.coef_) <= 8
    for estimator in (SparsePCA(k=5), SparseRegressorCV([1, 2], cv=2), SparsePortfolio(3)):
        seen = Recorder()
        estimator.set_callbacks(seen).fit(X, *([] if isinstance(estimator, SparsePortfolio) else [y]))
        assert seen.begun == seen.ended >= 1
