"""Linear estimators on data read by blocks: same answers as for data in memory, no copy of the data."""

import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

import ksparse as ks
from conftest import cases
from ksparse import data
from ksparse.data import blocks

M, N, K = 300, 30, 4


@pytest.fixture
def table(rng):
    X = (rng.standard_normal((M, N)) * rng.uniform(0.5, 2, N) + rng.standard_normal(N)).astype(np.float32)
    y = X[:, [2, 5, 11, 20]] @ np.array([1.0, -1.0, 2.0, 1.5]) + 3.0 + 0.1 * rng.standard_normal(M)
    return X, y


def chunked(X):
    return pytest.importorskip("dask.array", reason="dask is not installed").from_array(X, chunks=(64, X.shape[1]))


@pytest.fixture(params=cases(["single", "memmap", "dask", "source", "torch"]))
def stored(request, table, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "LARGE", 1000)
    X = table[0]
    np.save(tmp_path / "X.npy", X)
    kinds = {
        "single": lambda: X,
        "memmap": lambda: np.load(tmp_path / "X.npy", mmap_mode="r"),
        "dask": lambda: chunked(X),
        "torch": lambda: import_module("torch").tensor(X),
        "source": lambda: ks.blocks(tmp_path / "X.npy", 70),
    }
    return kinds[request.param]()


@pytest.mark.parametrize("intercept", [True, False])
def test_regression(stored, table, intercept):
    X, y = table
    plain, found = (ks.SparseRegressor(K, fit_intercept=intercept).fit(given, y) for given in (X.astype(float), stored))
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-9)
    assert found.intercept_ == pytest.approx(plain.intercept_, abs=1e-8)
    np.testing.assert_allclose(np.asarray(found.predict(stored)), plain.predict(X.astype(float)), atol=1e-4)
    assert 0 < found.result_.passes <= 10


@pytest.mark.parametrize("weighted", [True, False])
def test_classification(stored, table, weighted):
    X, y = table
    labels, weight = np.where(y > np.median(y), "high", "low"), np.linspace(0.5, 1.5, M) if weighted else None
    plain, found = (
        ks.SparseClassifier(K, alpha=1e-2).fit(given, labels, weight) for given in (X.astype(float), stored)
    )
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-6)
    assert (found.predict(stored) == plain.predict(X.astype(float))).all()


def test_cross_validation(stored, table):
    X, y = table
    plain, found = (ks.SparseRegressorCV(ks=[2, 4, 6], cv=3).fit(given, y) for given in (X.astype(float), stored))
    assert found.k_ == plain.k_
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-8)
    shuffled = ks.SparseRegressorCV(ks=[2], cv=ShuffleSplit(2, random_state=0))
    if hasattr(stored, "numpy"):  # a device takes rows in any order
        np.testing.assert_allclose(shuffled.fit(stored, y).coef_, shuffled.fit(X.astype(float), y).coef_, atol=1e-8)
        return
    with pytest.raises(ValueError, match="only be taken in their order"):
        shuffled.fit(stored, y)


@pytest.mark.parametrize("estimator", [ks.SparsePCA(2, 3), ks.SparsePortfolio(3)])
def test_the_others_take_large_single_precision_arrays(estimator, table, monkeypatch):
    monkeypatch.setattr(data, "LARGE", 1000)
    returns = 0.01 * table[0]
    single, double = (
        estimator.fit(given).components_ if isinstance(estimator, ks.SparsePCA) else estimator.fit(given).weights_
        for given in (returns, returns.astype(float))
    )
    np.testing.assert_allclose(single, double, atol=1e-5)


def test_bounds_and_names(table, monkeypatch):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    import pandas as pd

    X, y = table
    frame = pd.DataFrame(X.astype(float), columns=[f"f{j}" for j in range(N)])
    options = {"positive": ["f5"], "forced_in": ["f7"]}
    plain, found = (
        ks.SparseRegressor(K, **options).fit(given, y) for given in (frame, dd.from_pandas(frame, npartitions=3))
    )
    assert list(found.get_feature_names_out()) == list(plain.get_feature_names_out())
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-9)


def test_errors(stored, table):
    X, y = table
    with pytest.raises(ValueError, match=r"y must have as many entries as X has rows, 300, got 299"):
        ks.SparseRegressor(K).fit(stored, y[:-1])
    with pytest.raises(ValueError, match="expecting 30"):
        ks.SparseRegressor(K).fit(stored, y).predict(X.astype(float)[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        ks.SparseRegressor(K).fit(stored, np.where(np.arange(M) == 3, np.nan, y))
    with pytest.raises(ValueError, match="sample_weight"):
        ks.SparseRegressor(K).fit(stored, y, np.ones(5))


@pytest.mark.slow
def test_no_copy_of_a_large_single_precision_array(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 2**18)
    X = np.random.default_rng(0).standard_normal((24_000, 500)).astype(np.float32)  # 48 MB
    y = X[:, 3] - 2.0 * X[:, 100] + 1.0
    tracemalloc.start()
    found = ks.SparseRegressor(2).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert list(np.flatnonzero(found.coef_)) == [3, 100]
    assert peak < X.nbytes / 2  # a copy in double precision would be twice as much as X
