"""User-defined losses in the linear models and estimators."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ksparse as ks
from ksparse.linear.choose_k import deviance
from ksparse.linear.problem import linear_problem


class LogCosh(ks.DataFit):
    """Σ wᵢ s² log cosh(rᵢ/s): squares for small residuals, absolute values for large ones."""

    def __init__(self, A, b, sample_weight=None, ridge=0.0, s=1.0):
        super().__init__(A, b, sample_weight, ridge)
        self.s = s

    def h(self, image):
        r = np.abs(image - self.b) / self.s
        return self.s**2 * (r + np.log1p(np.exp(-2 * r)) - np.log(2))

    def slope(self, image):
        return self.s * np.tanh((image - self.b) / self.s)

    def bend(self, image):
        return 1 / np.cosh(np.minimum(np.abs(image - self.b) / self.s, 300)) ** 2


class HalfSquares(ks.DataFit):
    """½r², not declared as quadratic."""

    def h(self, image):
        return 0.5 * (image - self.b) ** 2

    def slope(self, image):
        return image - self.b

    def bend(self, image):
        return np.ones_like(image)


class PlainSquares(ks.Loss):
    """½ Σ wᵢrᵢ² as a plain `Loss` with squares()."""

    convex = True

    def __init__(self, A, b, sample_weight, ridge):
        self.A, self.b, self.n = A, b, A.shape[1]
        self.w = np.ones(len(b)) if sample_weight is None else sample_weight
        self.rho = np.zeros(self.n) + ridge

    def image(self, x):
        return self.A @ x

    def value_at(self, x, image):
        return 0.5 * float(self.w @ (image - self.b) ** 2 + self.rho @ x**2)

    def gradient_at(self, x, image):
        return self.A.T @ (self.w * (image - self.b)) + self.rho * x

    def curvature_at(self, x, image, d, image_d):
        return float(self.w @ image_d**2 + self.rho @ d**2)

    def lipschitz(self):
        return float(np.linalg.norm(np.sqrt(self.w)[:, None] * self.A, 2) ** 2 + self.rho.max())

    def squares(self):
        return ks.Squares(self.A, self.b, self.w, self.rho if self.rho.any() else None)


@pytest.fixture
def table(rng):
    X = rng.standard_normal((80, 8)) * np.linspace(0.5, 3, 8) + 5
    y = 2 * X[:, 1] - X[:, 6] + 7 + 0.3 * rng.standard_normal(80)
    return X, y


@pytest.mark.parametrize("loss", [HalfSquares, PlainSquares])
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 0.1}, {"fit_intercept": False}, {"positive": True}, {"standardize": False}]
)
def test_own_squares_give_the_model_of_the_squared_loss(table, loss, options, rng):
    X, y = table
    weight = rng.integers(0, 3, len(y)).astype(float)
    for given in (None, weight):
        ours = ks.SparseRegressor(3, **options).fit(X, y, given)
        own = ks.SparseRegressor(3, loss=loss, **options).fit(X, y, given)
        np.testing.assert_allclose(own.coef_, ours.coef_, rtol=1e-5, atol=1e-7)
        assert own.intercept_ == pytest.approx(ours.intercept_, rel=1e-5, abs=1e-7)
        np.testing.assert_allclose(own.predict(X), ours.predict(X), rtol=1e-5)


def test_squares_of_a_plain_loss_are_proved_too(table):
    X, y = table
    result = ks.SparseRegressor(3, loss=PlainSquares).fit(X, y).result_
    assert result.status is ks.Status.OPTIMAL
    assert result.proved


@pytest.mark.parametrize("loss", [HalfSquares, PlainSquares])
def test_folds_count_the_own_loss_of_the_rows_left_out(table, loss, rng):
    X, y = table
    weight = rng.uniform(0.5, 2, len(y))
    ours = ks.SparseRegressorCV(range(1, 5), cv=4).fit(X, y, weight)
    own = ks.SparseRegressorCV(range(1, 5), cv=4, loss=loss).fit(X, y, weight)
    np.testing.assert_allclose(own.cv_errors_, ours.cv_errors_, rtol=1e-4)
    assert own.k_ == ours.k_ == 2


def test_cross_validation_uses_h_itself(table):
    X, y = table
    own = ks.SparseRegressorCV([2], cv=[(np.arange(60), np.arange(60, 80))], loss=LogCosh).fit(X, y)
    fold = ks.SparseRegressor(2, loss=LogCosh).fit(X[:60], y[:60])
    residual = y[60:] - fold.predict(X[60:])
    assert own.cv_errors_[0, 0] == pytest.approx(2 * np.mean(np.log(np.cosh(residual))), rel=1e-6)


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic"])
def test_criteria_take_the_loss_for_a_likelihood(table, criterion):
    X, y = table
    own = ks.SparseRegressorCV(range(1, 5), criterion=criterion, loss=partial(LogCosh, s=3.0)).fit(X, y / 0.3)
    assert own.k_ == 2 or criterion == "aic"
    score, ones = own.predict(X), np.ones(80)
    assert deviance(LogCosh, y, score, ones) == pytest.approx(2 * np.sum(np.log(np.cosh(y - score))))


def test_outliers_do_not_rule_and_the_intercept_is_free(table):
    X, y = table
    y = y.copy()
    y[::10] += 1000.0
    model = ks.SparseRegressor(2, loss=LogCosh).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.coef_), [1, 6])
    np.testing.assert_allclose(model.coef_[[1, 6]], [2, -1], atol=0.1)
    assert np.count_nonzero(model.result_.x) == 3  # the intercept takes no seat
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)


def test_y_is_given_as_it_is(table):
    X, y = table
    seen = []

    def watched(A, b, sample_weight, ridge):
        seen.append((np.array(b), A.shape[1]))
        return LogCosh(A, b, sample_weight, ridge)

    problem = linear_problem(X, y, loss=watched)
    np.testing.assert_array_equal(seen[0][0], y)
    assert seen[0][1] == 9  # the intercept is the last column
    assert problem.intercept_is_variable
    assert problem.target_scale == problem.common_scale == 1.0
    fit = problem.minimize(2)
    np.testing.assert_array_equal(np.flatnonzero(fit.coef), [1, 6])


def test_sparse_tables(table):
    X, y = table
    dense = ks.SparseRegressor(2, loss=LogCosh).fit(X, y)
    sparse = ks.SparseRegressor(2, loss=LogCosh).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-4, atol=1e-6)


def test_parameters_clones_pickles_and_searches(table):
    X, y = table
    model = ks.SparseRegressor(2, loss=LogCosh)
    assert model.get_params()["loss"] is LogCosh
    assert clone(model).loss is LogCosh
    fitted = model.fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.loss is LogCosh
    scaled = partial(LogCosh, s=0.5)
    assert clone(ks.SparseRegressor(2, loss=scaled)).get_params()["loss"].keywords == {"s": 0.5}
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model), {"sparseregressor__loss": ["squared", LogCosh, scaled]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.9
    assert "LogCosh" in repr(model)


class OfTwo(ks.DataFit):
    def __init__(self, A, b):
        super().__init__(A, b)


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (
            3,
            TypeError,
            "loss must be a name or a class, called as loss.A, b, sample_weight, ridge., got int",
        ),
        (None, TypeError, "got NoneType"),
        (HalfSquares(np.eye(2), np.ones(2)), TypeError, "got HalfSquares: pass the class"),
        (OfTwo, TypeError, "must be called as .* but OfTwo cannot"),
        (lambda A, b, w, r: 3.0, TypeError, "must return a ksparse.Loss, but <lambda> returned float"),
        (
            lambda A, b, w, r: HalfSquares(A[:, :2], b),
            ValueError,
            "must have n = 9, the columns of A, but <lambda> has n = 2",
        ),
        (
            "median",
            ValueError,
            "loss must be one of squared, huber, .*tweedie, got 'median'; a custom loss is a class",
        ),
    ],
)
@pytest.mark.parametrize("estimator", [ks.SparseRegressor, ks.SparseRegressorCV])
def test_what_is_no_loss_is_refused(table, estimator, loss, error, words):
    with pytest.raises(error, match=words):
        estimator(loss=loss).fit(*table)


def test_a_method_that_forces_no_variable_cannot_keep_the_intercept(table):
    with pytest.raises(ks.MissingPieceError, match="with the LogCosh loss"):
        ks.SparseRegressor(2, loss=LogCosh, method="apdca").fit(*table)
    fit = ks.SparseRegressor(2, loss=LogCosh, method="apdca", fit_intercept=False).fit(*table)
    assert np.count_nonzero(fit.coef_) == 2
