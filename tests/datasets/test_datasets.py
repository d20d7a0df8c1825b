"""The embedded data and the generators match their descriptions."""

import numpy as np
import pytest

from conftest import data_file
from ksparse import datasets
from ksparse.datasets import MissingDataError, pit_props, table2, table5
from ksparse.datasets.files import FILES, read


def test_pit_props_is_a_correlation_matrix_and_the_published_one():
    R, names = pit_props()
    assert R.shape == (13, 13)
    assert names[0] == "topdiam"
    np.testing.assert_array_equal(R, R.T)
    np.testing.assert_array_equal(np.diag(R), 1.0)
    assert np.linalg.eigvalsh(R)[0] > 0
    assert np.linalg.eigvalsh(R)[-1] == pytest.approx(4.2186, abs=1e-4)
    np.testing.assert_allclose(R, np.load(data_file("pitprops_jeffers1967.npz"))["R"], atol=1e-12)


def test_table_2_is_drawn_as_specified():
    data = table2(1, seed=3)
    rng = np.random.default_rng(3)
    A = rng.standard_normal((720, 2560))
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(2560)
    x[rng.choice(2560, 80, replace=False)] = rng.standard_normal(80)
    np.testing.assert_array_equal(data.A, A)
    np.testing.assert_array_equal(data.x_true, x)
    np.testing.assert_array_equal(data.b, A @ x - 0.01 * rng.standard_normal(720))
    assert data.k == 80


def test_table_5_has_correlated_unit_columns_and_a_unit_right_hand_side():
    data = table5(2, seed=0)
    assert data.A.shape == (360, 1280)
    assert data.k == 40
    np.testing.assert_allclose(np.linalg.norm(data.A, axis=0), 1.0)
    assert np.linalg.norm(data.b) == pytest.approx(1.0)
    neighbours = np.mean(np.sum(data.A[:, 1:] * data.A[:, :-1], axis=0))
    assert neighbours == pytest.approx(0.5, abs=0.01)
    np.testing.assert_array_equal(data.nonnegative, np.arange(128))
    assert np.abs(data.x_true).max() <= 1


def test_the_factor_model_looks_like_a_stock_market():
    assets = datasets.factor_model(200, 1500, seed=1)
    assert assets.returns.shape == (1500, 200)
    assert len(assets.names) == len(set(assets.names)) == 200
    np.testing.assert_allclose(assets.V, np.cov(assets.returns.T))
    np.testing.assert_allclose(assets.r, assets.returns.mean(axis=0))
    volatility = np.sqrt(250 * np.diag(assets.V))
    assert 0.25 <= np.median(volatility) <= 0.45
    correlation = np.corrcoef(assets.returns.T)[np.triu_indices(200, 1)]
    assert 0.15 <= correlation.mean() <= 0.5
    tails = ((assets.returns - assets.r) / assets.returns.std(axis=0)) ** 4
    assert tails.mean() > 3.5  # fatter than Gaussian
    np.testing.assert_array_equal(assets.returns, datasets.factor_model(200, 1500, seed=1).returns)
    assert not np.array_equal(assets.returns, datasets.factor_model(200, 1500, seed=2).returns)


def test_the_factor_model_has_the_shape_of_table_4_by_default():
    assert datasets.factor_model().returns.shape == (2148, 1338)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_says_what_it_is_and_where_to_get_it(name, monkeypatch, tmp_path):
    for folder in (None, str(tmp_path)):
        if folder is None:
            monkeypatch.delenv("KSPARSE_DATA", raising=False)
        else:
            monkeypatch.setenv("KSPARSE_DATA", folder)
        with pytest.raises(MissingDataError) as caught:
            read(name)
        message = str(caught.value)
        for word in (
            FILES[name].file,
            "KSPARSE_DATA",
            folder or "not set",
            FILES[name].source,
            *FILES[name].arrays[:1],
        ):
            assert word in message


def test_a_file_without_its_arrays_is_refused(monkeypatch, tmp_path):
    np.savez(tmp_path / "colon_alon1999.npz", Y=np.zeros(3))
    monkeypatch.setenv("KSPARSE_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"colon_alon1999.npz must hold X, y; X, y is not in it"):
        datasets.colon()
    for content in (b"", b"PK", b"text"):
        (tmp_path / "colon_alon1999.npz").write_bytes(content)
        with pytest.raises(MissingDataError, match=r"colon_alon1999.npz in .* cannot be read as an NPZ file"):
            datasets.colon()
    with pytest.raises(ValueError, match="name must be one of colon, leukemia"):
        read("iris")
    with pytest.raises(ValueError, match="i must be 1, 5 or 6, got 2"):
        datasets.orlib_index(2)
    with pytest.raises(ValueError, match="name must be one of 200_a, 200_b"):
        datasets.buy_ins("500_a")


def test_real_data_have_their_published_shapes():
    for name in ("colon", "leukemia", "tokyo", "port3", "indtrack1", "pard200_a"):
        data_file(FILES[name].file)
    assert datasets.colon()[0].shape == (62, 2000)
    assert datasets.leukemia()[0].shape == (72, 7129)
    assert datasets.tokyo().returns.shape == (2148, 1338)
    assets = datasets.orlib_portfolio(3)
    assert assets.V.shape == (89, 89)
    assert assets.returns is None
    bought = datasets.buy_ins("200_a")
    assert bought.Q.shape == (200, 200)
    assert (bought.lower < bought.upper).all()
    index, prices = datasets.orlib_index(1)
    assert prices.shape == (len(index), 31)


def test_the_weekly_prices_become_log_returns_in_sample():
    data_file(FILES["sp500"].file)
    assets = datasets.sp500()
    prices = read("sp500")["prices"].astype(float)
    assert assets.returns.shape == (212, 476)
    assert len(set(assets.names)) == 476
    np.testing.assert_allclose(assets.returns[[0, 211]], np.log(prices[[1, 212]] / prices[[0, 211]]))
    np.testing.assert_allclose(assets.V, np.cov(assets.returns.T), atol=1e-15)


def test_bundled_sets_have_named_columns():
    for table, shape in (
        (datasets.diabetes(), (442, 10)),
        (datasets.diabetes(quadratic=True), (442, 64)),
        (datasets.breast_cancer(), (569, 30)),
    ):
        X, y, names = table
        assert X.shape == shape
        assert len(names) == len(set(names)) == shape[1]
        assert len(y) == shape[0]
    X, y, names = datasets.digits()
    assert X.shape == (1797, 61)
    assert np.ptp(X, axis=0).min() > 0
    assert len(names) == 61
