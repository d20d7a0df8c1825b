"""What a model remembers of H."""

import numpy as np
import pytest

import ksparse as ks

H0 = np.add.outer(np.arange(10.0), np.arange(10.0)) + 1000 * np.eye(10)


class Failing:
    """H by its rows, of which one call fails."""

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


@pytest.mark.parametrize("many", [range(3, 10), range(3, 6)])  # more than half of the columns are fetched as all of them
def test_an_interrupt_leaves_nothing_in_a_wrong_place(many):
    H = Failing()
    model = ks.QuadraticModel(H, np.zeros(10), sign=1)
    model.fetch(np.array([0, 1, 2]))
    H.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.fetch(np.array(many))
    model.fetch(np.array([5]))
    np.testing.assert_array_equal(model.rows(np.arange(10)), H0)


def test_rows_that_others_hold_stay_as_they_are():
    model = ks.QuadraticModel(Failing(), np.zeros(10), sign=1)
    held = model.row(7)
    model.fetch(np.arange(9))
    np.testing.assert_array_equal(held, H0[7])
