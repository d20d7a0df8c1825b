"""The embedded data and the generators are what they say."""

import numpy as np
import pytest

from conftest import data_file
from ksparse.datasets import pit_props, table2, table5


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
