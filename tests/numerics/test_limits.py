"""The largest sum under limits against enumeration, and bounds with one variable in or out."""

from itertools import combinations

import numpy as np
import pytest

from ksparse.numerics.relaxation import GroupLimits
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT


def drawn(seed):
    """Return limits, charges and decisions that do not contradict each other."""
    rng = np.random.default_rng(seed)
    n, grouped = int(rng.integers(2, 9)), seed % 2 == 1
    member = np.unique(rng.integers(0, n, n), return_inverse=True)[1] if grouped else np.arange(n)
    members = member.max() + 1
    label = np.unique(rng.integers(0, 3, members), return_inverse=True)[1]
    least = rng.integers(0, 2, label.max() + 1)
    limits = GroupLimits(
        int(rng.integers(least.sum(), members + 1)), label, least, least + rng.integers(0, 3, least.size), member
    )
    charge = rng.choice([0.0, 0.5, 1.0, 2.0, rng.random()], n) if seed % 3 else rng.exponential(size=n)
    state = rng.choice([FREE, IN, OUT], p=[0.7, 0.1, 0.2], size=members)
    return limits, charge, state[member]


def supports(limits, state, exactly):
    """Yield every set of members within the limits, with those decided in and without those decided out."""
    decided = limits.states(state[None])[0]
    for size in [limits.k] if exactly else range(limits.k + 1):
        for chosen in combinations(range(limits.label.size), size):
            per = np.bincount(limits.label[list(chosen)], minlength=limits.min_count.size)
            inside = set(chosen) >= set(np.flatnonzero(decided == IN)) and not set(chosen) & set(
                np.flatnonzero(decided == OUT)
            )
            if inside and (per >= limits.min_count).all() and (per <= limits.max_count).all():
                yield set(chosen)


def best(limits, charge, state, exactly=False):
    worth = np.bincount(limits.member, charge)
    return max((sum(worth[list(S)]) for S in supports(limits, state, exactly)), default=-np.inf)


@pytest.mark.parametrize("exactly", [False, True])
def test_as_by_trying_all(exactly):
    met = 0
    for seed in range(400):
        limits, charge, state = drawn(seed)
        charge = charge - (0.7 if exactly else 0.0)
        optimum = best(limits, charge, state, exactly)
        found = limits.top_sum(charge[None], state[None], exactly)
        if optimum == -np.inf:  # no support qualifies: any bound is above
            continue
        met += 1
        assert found.total[0] == pytest.approx(optimum, abs=1e-12)
        worth = found.values[0]
        for i in np.flatnonzero(state == FREE):
            of = limits.member == limits.member[i]
            without, with_ = (best(limits, charge, np.where(of, side, state), exactly) for side in (OUT, IN))
            if found.selected[0, i] and worth[i] > found.largest_unselected[0, i]:
                assert without <= optimum - (worth[i] - found.largest_unselected[0, i]) + 1e-12
            if worth[i] < found.smallest_selected[0, i]:
                assert with_ <= optimum - (found.smallest_selected[0, i] - worth[i]) + 1e-12
    assert met > 150


def test_many_nodes_as_one_by_one(rng):
    limits = GroupLimits(4, np.array([0, 0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 0]), np.array([1, 2, 8]), np.arange(8))
    charge, state = rng.random((30, 8)), rng.choice([FREE, FREE, OUT], size=(30, 8))
    state[:, 0] = IN
    found = limits.top_sum(charge, state)
    for row in range(30):
        for name, value in vars(limits.top_sum(charge[[row]], state[[row]])).items():
            np.testing.assert_allclose(getattr(found, name)[[row]], value)


def test_limits_by_hand():
    limits = GroupLimits(3, np.array([0, 0, 0, 1]), np.array([0, 0]), np.array([2, 1]), np.arange(4))
    found = limits.top_sum(np.array([[5.0, 4.0, 3.0, 1.0]]), np.zeros((1, 4), dtype=np.int8))
    assert found.total[0] == 10.0  # not 12: of the first three no more than two
    np.testing.assert_allclose(found.largest_unselected, [[3.0, 3.0, 3.0, 0.0]])
    np.testing.assert_allclose(found.smallest_selected, [[4.0, 4.0, 4.0, 1.0]])
