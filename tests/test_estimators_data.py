"""Data given to estimators: DataFrames of all dtypes, text for numbers, prices for returns, numbers of any size."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import ksparse as ks
from ksparse.estimators import (
    SparseClassifier,
    SparseClassifierCV,
    SparsePCA,
    SparsePortfolio,
    SparseRegressor,
    SparseRegressorCV,
)
from ksparse.portfolio.problem import looks_like_prices, portfolio
from ksparse.portfolio.solve import solve_portfolio

ESTIMATORS = {
    "SparseRegressor": lambda **more: SparseRegressor(2, **more),
    "SparseRegressor huber": lambda **more: SparseRegressor(2, loss="huber", **more),
    "SparseRegressor poisson": lambda **more: SparseRegressor(2, loss="poisson", **more),
    "SparseRegressorCV": lambda **more: SparseRegressorCV([1, 2], cv=3, **more),
    "SparseRegressorCV bic": lambda **more: SparseRegressorCV([1, 2], criterion="bic", **more),
    "SparseClassifier": lambda **more: SparseClassifier(2, **more),
    "SparseClassifierCV": lambda **more: SparseClassifierCV([1, 2], cv=3, **more),
    "SparsePCA": lambda **more: SparsePCA(2, 2, **more),
    "SparsePortfolio": lambda **more: SparsePortfolio(2, **more),
}
NAMES = list("abcde")


def table(name, rows=60, seed=0):
    """Return X and y that fit the estimator."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (rows, 5)).astype(float)
    y = X @ [1.0, 0.0, -2.0, 0.0, 0.5] + rng.standard_normal(rows)
    if "Classifier" in name:
        y = np.where(y > 0, "yes", "no")
    if "poisson" in name:
        y = rng.poisson(np.exp(0.2 * X[:, 0])).astype(float)
    return X, None if name in ("SparsePCA", "SparsePortfolio") else y


def answer(model):
    for name in ("coef_", "components_", "weights_"):
        if hasattr(model, name):
            return np.atleast_2d(getattr(model, name))
    raise AssertionError(model)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_frames_of_all_dtypes_are_the_array_beneath(name):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = table(name)
    wanted = answer(ESTIMATORS[name]().fit(X, y))
    frame = pd.DataFrame(X, columns=NAMES)
    frames = {
        "float": frame,
        "int": frame.astype(int),
        "nullable": frame.astype("Int64"),
        "nullable float": frame.astype("Float64"),
        "object": frame.astype(object),
        "mixed": frame.astype({"a": int, "b": "Float64", "c": "float64", "d": "Int16", "e": object}),
        "fortran": pd.DataFrame(np.asfortranarray(X), columns=NAMES),
        "dates as index": frame.set_axis(pd.date_range("2020-01-01", periods=len(X))),
    }
    for kind, given in frames.items():
        before = given.copy(deep=True)
        target = y if y is None or "Classifier" in name else pd.Series(y).astype("Float64")
        model = ESTIMATORS[name]().fit(given, target)
        np.testing.assert_allclose(answer(model), wanted, atol=1e-9, err_msg=kind)
        assert list(model.feature_names_in_) == NAMES
        pd.testing.assert_frame_equal(given, before)  # untouched
    short = frame.astype(np.float32)
    np.testing.assert_allclose(answer(ESTIMATORS[name]().fit(short, y)), wanted, atol=1e-5)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_columns_go_by_name(name):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = table(name)
    frame = pd.DataFrame(X, columns=NAMES)
    model = ESTIMATORS[name]().fit(frame, y)
    turned = ESTIMATORS[name]().fit(frame[NAMES[::-1]], y)
    places = [NAMES[::-1].index(column) for column in NAMES]
    size = np.abs(answer(turned)[:, places])
    np.testing.assert_allclose(size, np.abs(answer(model)), atol=1e-6)  # in another order the same columns are chosen
    use = model.transform if name == "SparsePCA" else model.predict
    with pytest.raises(ValueError, match="feature names should match"):
        use(frame[NAMES[::-1]])


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("cell", [np.nan, np.inf, None])
def test_missing_and_infinite_cells_are_refused(name, cell):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = table(name)
    frame = pd.DataFrame(X, columns=NAMES).astype(object)
    frame.loc[3, "b"] = cell
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ESTIMATORS[name]().fit(frame, y)
    if cell is None:
        nullable = pd.DataFrame(X, columns=NAMES).astype("Int64")
        nullable.loc[3, "b"] = pd.NA
        with pytest.raises(ValueError, match="NaN"):
            ESTIMATORS[name]().fit(nullable, y)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_are_refused_by_the_name_of_their_column(name, zone):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = table(name)
    when = pd.date_range("2020-01-01", periods=len(X), tz=zone)
    for frame in (pd.DataFrame(X, columns=NAMES).assign(when=when), pd.DataFrame({"when": when})):
        with pytest.raises(TypeError, match="X must hold numbers, but column 'when' holds dates or times"):
            ESTIMATORS[name]().fit(frame, y)
    with pytest.raises(TypeError, match="X must hold numbers, but it holds dates or times"):
        ESTIMATORS[name]().fit(np.asarray(when.tz_localize(None))[:, None], y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_text_is_refused_by_the_name_of_the_argument(name):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = table(name)
    frame = pd.DataFrame(X, columns=NAMES).astype(object)
    frame.loc[3, "b"] = "red"
    with pytest.raises(ValueError, match=r"X must hold numbers, but column 'b' holds text: .*red"):
        ESTIMATORS[name]().fit(frame, y)
    if y is None:
        return
    model = ESTIMATORS[name]()
    if "Regressor" in name:
        for wrong in (
            ["many"] * len(X),
            np.array(["many"] * len(X), dtype=object),
            pd.Series(["1"] * len(X)),
            np.arange(len(X)).astype("S"),
        ):
            with pytest.raises(TypeError, match="y must hold numbers, but it holds text"):
                model.fit(X, wrong)
        with pytest.raises(TypeError, match="y must hold numbers, but it holds dates or times"):
            model.fit(X, pd.date_range("2020-01-01", periods=len(X)))
    for wrong in (["1"] * len(X), np.array(["heavy"] * len(X), dtype=object)):
        with pytest.raises(TypeError, match="sample_weight must hold numbers, but it holds text"):
            model.fit(X, y, sample_weight=wrong)
    with pytest.raises(ValueError, match="sample_weight must be an array of numbers"):
        model.fit(X, y, sample_weight=[[1], [1, 2]] * (len(X) // 2))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("value", "error"), [("x", TypeError), (0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_numbers_of_jobs_are_checked(name, value, error):
    X, y = table(name)
    with pytest.raises(error, match="n_jobs must be None or an integer other than 0"):
        ESTIMATORS[name](n_jobs=value).fit(X, y)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "CV" not in name])
def test_more_than_there_are_is_no_restriction_and_a_warning(name):
    X, y = table(name)
    every = answer(ESTIMATORS[name]().set_params(k=5).fit(X, y))
    with pytest.warns(UserWarning, match="k=500 is more than the number of (features|assets), 5"):
        more = ESTIMATORS[name]().set_params(k=500).fit(X, y)
    np.testing.assert_allclose(answer(more), every, atol=1e-9)


# --- numbers of any size ---


@pytest.mark.parametrize("name", ESTIMATORS)
def test_numbers_too_large_to_be_squared_are_refused_by_column(name):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = table(name)
    frame = pd.DataFrame(X.copy(), columns=NAMES)  # before pandas 3 it would write into X
    frame.loc[3, "b"] = -1e300
    with pytest.raises(
        ValueError, match=r"absolute values in X must not exceed 1e\+100, got 1e\+300 in column 'b': rescale the data"
    ):
        ESTIMATORS[name]().fit(frame, y)
    with pytest.raises(ValueError, match=r"in column 1: rescale the data"):
        ESTIMATORS[name]().fit(frame.to_numpy(), y)
    if y is not None:
        with pytest.raises(ValueError, match=r"absolute values in sample_weight must not exceed 1e\+100"):
            ESTIMATORS[name]().fit(X, y, sample_weight=np.full(len(X), 1e200))
        with pytest.raises(ValueError, match="in column 1: rescale the data"):
            ESTIMATORS[name]().fit(scipy.sparse.csr_array(frame.to_numpy()), y)
    if "Regressor" in name:
        with pytest.raises(ValueError, match=r"absolute values in y must not exceed 1e\+100|y must hold counts up to"):
            ESTIMATORS[name]().fit(X, np.abs(y) * 1e200)
        with pytest.raises(ValueError, match="the largest absolute value in y must be at least 1e-120"):
            ESTIMATORS[name]().fit(X, np.abs(y) * 1e-200)


@pytest.mark.parametrize("how", [{}, {"standardize": False}, {"C": ks.Simplex()}, {"C": ks.L1Ball(2.0)}], ids=str)
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regression_in_any_units(loss, how):
    X, y = table("SparseRegressor")
    X = X + 0.1 * np.random.default_rng(1).standard_normal(X.shape)
    how = how | ({"fit_intercept": False} if loss == "huber" and isinstance(how.get("C"), ks.L1Ball) else {})
    wanted = SparseRegressor(2, loss=loss, **how).fit(X, y).coef_
    for a, b in ((1e98, 1.0), (1e-98, 1.0), (1.0, 1e98), (1.0, 1e-98), (1e98, 1e98), (1e-98, 1e-98)):
        if "C" in how and a != b:
            continue  # the set is in the units of the coefficients
        model = SparseRegressor(2, loss=loss, **how).fit(a * X, b * y)
        np.testing.assert_allclose(model.coef_ * (a / b), wanted, rtol=1e-6, atol=1e-9, err_msg=f"X·{a:g}, y·{b:g}")
        assert np.isfinite(model.result_.fun)
        assert model.result_.success


def test_a_ridge_keeps_its_meaning_where_columns_are_not_scaled():
    X, y = table("SparseRegressor")
    for scale, alpha in ((1e8, 0.3), (1e-8, 0.3), (1e20, 1e15)):
        model = SparseRegressor(5, standardize=False, alpha=alpha, fit_intercept=False).fit(scale * X, y)
        G = scale**2 * X.T @ X + alpha * len(X) * np.eye(5)
        np.testing.assert_allclose(model.coef_, np.linalg.solve(G, scale * X.T @ y), rtol=1e-6)


def test_sparse_tables_in_any_units():
    X, y = table("SparseRegressor")
    wanted = SparseRegressor(2).fit(scipy.sparse.csr_array(X), y).coef_
    for scale in (1e98, 1e-98, 1e-200):
        np.testing.assert_allclose(
            SparseRegressor(2).fit(scipy.sparse.csr_array(X * scale), y).coef_ * scale, wanted, rtol=1e-6
        )


@pytest.mark.parametrize("deflation", ["projection", "hotelling", "orthogonal"])
def test_components_in_any_units(deflation):
    X, _ = table("SparsePCA")
    wanted = SparsePCA(3, 2, scale=False, deflation=deflation).fit(X)
    for scale in (1e98, 1e-98):
        model = SparsePCA(3, 2, scale=False, deflation=deflation).fit(scale * X)
        np.testing.assert_allclose(model.components_, wanted.components_, atol=1e-9)
        np.testing.assert_allclose(model.explained_variance_ / scale / scale, wanted.explained_variance_, rtol=1e-9)
        np.testing.assert_allclose(model.explained_variance_ratio_, wanted.explained_variance_ratio_, rtol=1e-9)
        np.testing.assert_allclose(
            [r.fun / scale / scale for r in model.result_], [r.fun for r in wanted.result_], rtol=1e-9
        )
    with pytest.raises(ValueError, match=r"X must vary by at least 1e-120, .* rescale the data, or set scale=True"):
        SparsePCA(2, 2, scale=False).fit(1e-200 * X)
    np.testing.assert_allclose(
        np.abs(SparsePCA(2, 2).fit(1e-200 * X).components_), np.abs(SparsePCA(2, 2).fit(X).components_), atol=1e-9
    )


@pytest.fixture
def returns():
    rng = np.random.default_rng(1)
    return 0.01 * rng.standard_normal((120, 8)) * rng.uniform(0.5, 2, 8) + rng.uniform(-0.0005, 0.001, 8)


@pytest.mark.parametrize("scale", [1e100, 1e50, 1e-50, 1e-100])
@pytest.mark.parametrize("long_only", [True, False])
def test_portfolios_in_any_units(scale, long_only, returns):
    def fitted(by, **how):
        return SparsePortfolio(3, long_only=long_only, **how).fit(by * returns)

    wanted, model = fitted(1.0, risk_aversion=10.0), fitted(scale, risk_aversion=10.0 / scale)
    np.testing.assert_allclose(model.weights_, wanted.weights_, atol=1e-9)
    assert model.result_.fun / scale == pytest.approx(wanted.result_.fun, rel=1e-9)
    trace = model.result_.trace.F / scale
    np.testing.assert_allclose(trace, wanted.result_.trace.F, rtol=1e-9)
    np.testing.assert_allclose(
        fitted(scale, target_return=5e-4 * scale).weights_, fitted(1.0, target_return=5e-4).weights_, atol=1e-9
    )  # fmt: skip
    held = {"previous_weights": np.full(8, 0.125)}
    np.testing.assert_allclose(
        fitted(scale, risk_aversion=10.0 / scale, turnover_cost=2e-4 * scale, **held).weights_,
        fitted(1.0, risk_aversion=10.0, turnover_cost=2e-4, **held).weights_, atol=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(
        SparsePortfolio(3, C=ks.BudgetBox(1, 0, 0.5), risk_aversion=10 / scale).fit(scale * returns).weights_,
        SparsePortfolio(3, C=ks.BudgetBox(1, 0, 0.5), risk_aversion=10).fit(returns).weights_, atol=1e-9,
    )  # fmt: skip


def test_portfolios_where_one_side_counts_for_nothing(returns):
    least = SparsePortfolio(3, target_return=-1.0, long_only=False).fit(returns).weights_
    for long_only in (True, False):  # returns in huge units: the variance is all
        np.testing.assert_allclose(
            SparsePortfolio(3, long_only=long_only).fit(1e100 * returns).weights_, least, atol=1e-9
        )
    best = int(np.argmax(returns.mean(axis=0)))
    for scale in (1e-20, 1e-50, 1e-100):  # in tiny ones the return is
        weights = SparsePortfolio(3).fit(scale * returns).weights_
        assert weights[best] == pytest.approx(1.0)
        with pytest.raises(
            ValueError, match="the problem is unbounded: a zero-variance portfolio has unlimited return"
        ):
            SparsePortfolio(3, long_only=False).fit(scale * returns)
    with pytest.raises(ValueError, match="the largest absolute value in X must be at least 1e-120"):
        SparsePortfolio(3).fit(1e-200 * returns)


def test_the_library_beneath_in_any_units(returns):
    V, r = np.cov(returns.T), returns.mean(axis=0)
    wanted = solve_portfolio(portfolio(V, r, risk_aversion=10.0), 3)
    for scale in (1e100, 1e-100):
        found = solve_portfolio(portfolio(V * scale**2, r * scale, risk_aversion=10.0 / scale), 3)
        np.testing.assert_allclose(found.x, wanted.x, atol=1e-9)
        assert found.fun / scale == pytest.approx(wanted.fun, rel=1e-9)
        assert found.x.sum() == pytest.approx(1, abs=1e-9)


def test_a_variance_beyond_all_numbers_is_refused():
    with pytest.raises(
        ValueError, match=r"absolute values in V must not exceed 1e\+299 with a risk aversion of 10: rescale the data"
    ):
        portfolio(1e307 * np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match="absolute values in V must not exceed 1 with"):
        portfolio(5e3 * np.eye(3), np.ones(3), risk_aversion=1e300)


# --- prices ---


def test_prices_are_told_from_returns(returns):
    rng = np.random.default_rng(0)
    for start in (20.0, 100.0, rng.uniform(15, 4000, 8)):
        prices = start * np.cumprod(1 + returns, axis=0)
        assert looks_like_prices(prices)
        with pytest.warns(
            UserWarning, match="SparsePortfolio: X looks like prices .positive, changing slowly.; fit expects returns"
        ):
            SparsePortfolio(2).fit(prices)
    no_prices = {
        "returns": returns,
        "percent": 100 * returns,
        "basis points": 1e4 * returns,
        "five good years in percent": rng.uniform(2, 40, (5, 4)),
        "a money market in percent": 4 + 0.01 * rng.standard_normal((250, 3)),
        "factors 1 + r": 1 + returns,
        "two rows": np.full((2, 3), 50.0),
        "numbers around a level": 100 + rng.standard_normal((50, 2)),
        "the same in every row": np.full((30, 3), 50.0),
    }
    for name, X in no_prices.items():
        assert not looks_like_prices(X), name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            SparsePortfolio(2).fit(X)


# --- warnings point at the caller ---


def limited(name):
    X, y = table(name, rows=400)
    rng = np.random.default_rng(0)
    return np.hstack([X, rng.standard_normal((400, 400))]), y


@pytest.mark.parametrize(
    "name", ["SparseRegressor", "SparseRegressorCV bic", "SparseClassifier", "SparsePCA", "SparsePortfolio"]
)
def test_warnings_point_at_the_line_that_called(name):
    X, y = limited(name)
    model = ESTIMATORS[name](max_time=0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
        line = inspect.currentframe().f_lineno - 1
    seen = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert seen
    assert {(warning.filename, warning.lineno) for warning in seen} == {(__file__, line)}


def test_a_warning_about_prices_points_at_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparsePortfolio(2).fit(np.linspace(50, 60, 80).reshape(20, 4))
    assert [warning.filename for warning in caught] == [__file__]


# --- skfolio ---


def test_the_skfolio_face(returns):
    pytest.importorskip("skfolio", reason="skfolio is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    from ksparse.skfolio import SparseMeanRisk

    def frame(X):
        return pd.DataFrame(X, columns=list("abcdefgh"), index=pd.date_range("2020-01-01", periods=len(X)))

    wanted = SparseMeanRisk(3, risk_aversion=10.0).fit(frame(returns)).weights_
    np.testing.assert_allclose(
        SparseMeanRisk(3, risk_aversion=1e-99).fit(frame(1e100 * returns)).weights_, wanted, atol=1e-9
    )
    turned = SparseMeanRisk(3, risk_aversion=10.0).fit(frame(returns)[list("hgfedcba")]).weights_[::-1]
    np.testing.assert_allclose(turned, wanted, atol=1e-9)
    with pytest.raises(
        ValueError, match=r"absolute values in X must not exceed 1e\+100, .* in column 'a': rescale the data"
    ):
        SparseMeanRisk(3).fit(frame(np.where(np.arange(8) == 0, 1e300, returns)))
    with pytest.raises(TypeError, match="n_jobs must be None or an integer other than 0"):
        SparseMeanRisk(3, n_jobs="x").fit(frame(returns))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseMeanRisk(3).fit(frame(100 * np.cumprod(1 + returns, axis=0)))
    prices = [warning for warning in caught if "SparseMeanRisk: X looks like prices" in str(warning.message)]
    assert [warning.filename for warning in prices] == [__file__]
    wide = np.random.default_rng(0).standard_normal((300, 400)) * 0.01
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SparseMeanRisk(20, max_time=0.0).fit(pd.DataFrame(wide, columns=[f"s{j}" for j in range(400)]))
    late = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert [warning.filename for warning in late] == [__file__]


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_single_precision_stays_single_as_in_scikit_learn(kind, rng):
    X = kind(rng.standard_normal((60, 8)).astype(np.float32))
    y = np.asarray(X @ np.arange(8.0)) + rng.standard_normal(60)
    Y, labels = np.column_stack([y, -y]), np.digitize(y, [-5.0, 5.0])
    for model, target in (
        (ks.SparseRegressor(3), y),
        (ks.SparseRegressor(3), Y),
        (ks.SparseRegressor(3, multi_output="common"), Y),
        (ks.SparseRegressorCV([2, 3], cv=2), y),
        (ks.SparseClassifier(2), labels),
        (ks.SparseClassifier(2), labels > 0),
        (ks.SparseClassifierCV([1, 2], criterion="bic"), labels),
    ):
        single, double = clone(model).fit(X, target), clone(model).fit(X.astype(np.float64), target)
        found = [
            single.coef_,
            np.asarray(single.intercept_),
            getattr(single, "coef_path_", single.coef_),
            single.transform(X),
        ]
        found += (
            [single.predict_proba(X), single.decision_function(X)]
            if hasattr(single, "predict_proba")
            else [single.predict(X)]
        )
        assert {part.dtype for part in found} == {np.dtype(np.float32)}
        assert double.coef_.dtype == np.float64
        np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-5, atol=1e-7)  # found in double precision
        assert isinstance(single.result_, list | ks.Batch) or np.asarray(single.result_.x).dtype == np.float64
    model = ks.SparsePCA(2, k=3).fit(X)
    parts = (model.components_, model.mean_, model.scale_, model.explained_variance_, model.transform(X))
    assert {part.dtype for part in parts} == {np.dtype(np.float32)}
    assert model.inverse_transform(model.transform(X)).dtype == np.float32


def test_single_precision_keeps_bounds_and_signs(rng):
    X = rng.standard_normal((60, 8)).astype(np.float32)
    y = X @ np.arange(8.0)
    boxed = ks.SparseRegressor(4, C=ks.Box(-0.1, 0.1)).fit(X, y)
    assert np.abs(boxed.coef_.astype(np.float64)).max() <= 0.1
    assert ks.SparseRegressor(4, positive=True).fit(X, -y).coef_.min() >= 0


def test_single_precision_does_not_leave_the_set(rng):
    X = rng.standard_normal((60, 8)).astype(np.float32)
    y = X.sum(axis=1) + rng.standard_normal(60)
    model = ks.SparseRegressor(8, C=ks.Box(0.1, 0.3), fit_intercept=False).fit(X, y)
    assert 0.1 <= model.coef_.min() <= model.coef_.max() <= 0.3
    assert ks.SparseRegressor(2).fit(X, y * 1e-47).coef_.any()  # smaller than single precision goes
