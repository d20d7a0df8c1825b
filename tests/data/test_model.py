"""Cache of a model: the stored columns of H."""

import numpy as np
import pytest

import ksparse as ks

H0 = np.add.outer(np.arange(10.0), np.arange(10.0)) + 1000 * np.eye(10)


class Failing:
    """H by its rows; one call fails."""

    def __init__(self):
        self.fails = False

    def diagonal(self):
        return H0.diagonal().copy()

    def rows(self, support):
        if self.fails:
            self.fails = False
            raise KeyboardInterrupt
        return H0[support].copy()

    def times(self, X):
        return X @ H0


# more than half of the columns are fetched as all of them
@pytest.mark.parametrize("many", [range(3, 10), range(3, 6)])
def test_an_interrupt_leaves_nothing_in_a_wrong_place(many):
    H = Failing()
    model = ks.QuadraticModel(H, np.zeros(10), sign=1)
    model.prefetch(np.array([0, 1, 2]))
    H.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.prefetch(np.array(many))
    model.prefetch(np.array([5]))
    np.testing.assert_array_equal(model.rows(np.arange(10)), H0)


def test_rows_that_others_hold_stay_as_they_are():
    model = ks.QuadraticModel(Failing(), np.zeros(10), sign=1)
    held = model.row(7)
    model.prefetch(np.arange(9))
    np.testing.assert_array_equal(held, H0[7])


def test_all_rows_at_once_are_not_shared():
    """A user's H may return its own or a reused array, so rows are copied; rows of built-in losses are not."""
    M = np.diag([1.0, 2.0, 3.0])

    class Own:
        table = np.empty((3, 3))

        def diagonal(self):
            return np.diag(M)

        def times(self, X):
            return X @ M

        def rows(self, support):
            return np.take(M, support, axis=0, out=self.table[: support.size])

    H = Own()
    model = ks.QuadraticModel(H, np.ones(3), sign=1)
    model.prefetch(np.arange(3))
    ks.QuadraticModel(H, np.zeros(3), sign=1).prefetch(np.array([2]))
    np.testing.assert_array_equal(model.block(np.arange(3)), M)
    ours = ks.QuadraticModel.of_matrix(M)
    ours.prefetch(np.arange(3))
    assert not np.shares_memory(ours.row(0), M)


def test_columns_come_one_at_a_time_where_few_are_asked_for(rng):
    """Columns of the curvature at one point, of small data in memory, come singly; else one pass brings several."""
    A, b, w = rng.standard_normal((30, 12)), rng.standard_normal(30), rng.random(30)
    y, x = np.arange(30) % 2, np.zeros(12)
    assert ks.Logistic(A, y).model_at(x).prefetch_size == 1
    assert ks.Logistic(ks.blocks(A, height=8), y).model_at(x).prefetch_size == 16
    assert (
        ks.LeastSquares(A, b, sample_weight=w).quadratic().prefetch_size
        == ks.LeastSquares(A, b).quadratic().prefetch_size
        == 16
    )
