"""All supports that are nearly as good as the best, compared with enumeration."""

import itertools

import numpy as np
import pytest

import ksparse as ks
from conftest import sweep
from ksparse.plotting import plot_frequencies

SEARCHED = ks.SearchSettings(enumerated=0)


def families(seed):
    """Least squares free and with signs, and a portfolio."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 8)) + rng.standard_normal((30, 1))
    b = A[:, :3] @ rng.standard_normal(3) + rng.standard_normal(30)
    yield ks.LeastSquares(A, b), None
    yield ks.LeastSquares(A, b), ks.Nonnegative()
    yield ks.Quadratic(A.T @ A), ks.Simplex()


def enumerated(loss, C, n, k, within):
    """Return the nonzeros of the best point on every k-subset whose value is good enough."""
    C = ks.WholeSpace() if C is None else C
    found = {}
    for size in range(1, k + 1):
        for S in itertools.combinations(range(n), size):
            out = np.setdiff1d(np.arange(n), S)
            try:
                best = ks.minimize(loss, size, C, forced_out=out)
            except ks.InfeasibleError:
                continue
            found[tuple(best.support)] = best.fun
    found[()] = loss.value(np.zeros(n)) if C.contains(np.zeros(n)) else np.inf
    edge = min(found.values()) * (1 + within)
    return {support for support, value in found.items() if value <= edge}


def smooth(seed):
    """Losses that are not quadratic, with a ridge."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 8)) + 0.5 * rng.standard_normal((40, 1))
    pulled = A[:, :3] @ rng.standard_normal(3)
    yield ks.Logistic(A, np.where(pulled + rng.standard_normal(40) > 0, 1.0, -1.0), ridge=2.0), None
    yield ks.Huber(A, pulled + rng.standard_t(2, 40), 1.0, ridge=2.0), ks.Nonnegative()
    yield ks.Poisson(0.3 * A, rng.poisson(np.exp(0.3 * pulled)).astype(float), ridge=2.0), None


@pytest.mark.parametrize("kind", [families, smooth])
@pytest.mark.parametrize("seed", sweep(range(7), 3))
def test_it_is_what_enumeration_finds(seed, kind):
    for loss, C in kind(seed):
        found = ks.near_optimal(loss, 3, C, within=0.05, settings=SEARCHED)
        assert found.complete, found.message
        assert {tuple(support) for support in found.supports} == enumerated(loss, C, 8, 3, 0.05)
        assert (np.diff(found.values) >= 0).all()
        assert found.values[0] == pytest.approx(found.best.fun)
        for x, value, support in zip(found.x, found.values, found.supports, strict=True):
            assert loss.value(x) == pytest.approx(value)
            np.testing.assert_array_equal(np.flatnonzero(x), support)
            assert C is None or C.contains(x)


def test_frequencies_and_a_picture(rng):
    A = rng.standard_normal((60, 12))
    b = 3 * A[:, 2] + rng.standard_normal(60)
    found = ks.near_optimal(ks.LeastSquares(A, b), 2, within=0.2)
    assert found.complete
    assert found.frequencies[2] == 1.0
    assert found.frequencies.sum() == pytest.approx(np.mean([s.size for s in found.supports]))
    assert list(found.to_frame().columns) == ["objective", "excess", "nonzeros", "support"]
    assert f"{len(found)} supports within 20 %" in repr(found)
    assert plot_frequencies(found).get_xlabel().startswith("inclusion frequency")
    assert plot_frequencies(found, [f"g{i}" for i in range(12)]) is not None


def test_an_incomplete_list_is_marked(rng):
    A, b = rng.standard_normal((60, 15)), rng.standard_normal(60)
    few = ks.near_optimal(ks.LeastSquares(A, b), 4, within=0.5, at_most=5)
    assert not few.complete
    assert len(few) == 5
    assert "more than at_most = 5" in few.message
    wide = ks.near_optimal(ks.LeastSquares(A[:8], b[:8]), 3, within=0.1)
    assert not wide.complete
    assert len(wide) >= 1
    assert wide.message.startswith(
        "the list may be incomplete: no lower bound is available (some direction of φ has no curvature"
    )
    assert "more rows than columns" in wide.message
    smooth = ks.near_optimal(ks.Logistic(A, b > 0), 3, within=0.1)
    needed = "this loss needs a ridge term on every variable but one, or bounds on the variables"
    assert smooth.message == f"the list may be incomplete: no lower bound is available ({needed})"
    component = ks.near_optimal(ks.Quadratic(-(A.T @ A)), 3, ks.Box(-1, 1), settings=ks.SearchSettings(enumerated=0))
    assert component.message == "the list may be incomplete: no lower bound is available (φ is not convex)"
    late = ks.near_optimal(ks.LeastSquares(A, b), 6, within=0.5, max_time=0.05, at_most=10**6)
    assert not late.complete


def test_bad_arguments(rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 5)), rng.standard_normal(20))
    with pytest.raises(ValueError, match="within must be"):
        ks.near_optimal(loss, 2, within=-0.1)
    with pytest.raises(ValueError, match="within must be a fraction below 1"):
        ks.near_optimal(loss, 2, within=1.0)
    with pytest.raises(ValueError, match="at_most must be"):
        ks.near_optimal(loss, 2, at_most=0)


@pytest.mark.parametrize(("raised", "word"), [(StopIteration, "callback"), (KeyboardInterrupt, "interrupted")])
def test_a_search_that_was_stopped_is_not_followed_by_a_tree(raised, word):
    calls = []

    def stop(x):
        calls.append(x)
        raise raised

    A, b = np.random.default_rng(0).standard_normal((40, 12)), np.random.default_rng(1).standard_normal(40)
    found = ks.near_optimal(ks.LeastSquares(A, b), 3, within=0.3, settings=SEARCHED, callback=stop)
    assert len(calls) == 1
    assert not found.complete
    assert word in found.message
    assert found.nodes == 0
    assert len(found) >= 1


@pytest.mark.parametrize(
    ("error", "note"), [(StopIteration, "stopped by the callback"), (KeyboardInterrupt, "interrupted")]
)
def test_a_truncated_list_is_marked_as_perhaps_incomplete(error, note, rng):
    def stop(intermediate_result):
        if hasattr(intermediate_result, "nodes"):
            raise error

    loss = ks.LeastSquares(rng.standard_normal((60, 15)), rng.standard_normal(60))
    found = ks.near_optimal(loss, 4, within=0.5, callback=stop, settings=ks.SearchSettings(enumerated=0))
    assert found.message == f"the list may be incomplete: {note}"


def test_a_list_of_an_unbounded_problem_is_not_complete():
    found = ks.near_optimal(ks.Quadratic(np.diag([1.0, 1.0, 0.0]), [1.0, 1.0, 1.0]), 2)
    assert not found.complete
    assert "unbounded" in found.message


@pytest.mark.parametrize("settings", [None, SEARCHED])
def test_a_forced_variable_that_is_0_is_in_no_support_and_takes_a_place(settings):
    loss = ks.LeastSquares(np.eye(3), [-1.0, 2.0, 0.6])
    found = ks.near_optimal(loss, 2, ks.Nonnegative(), forced_in=[0], within=0.5, settings=settings)
    assert [support.tolist() for support in found.supports] == [[1]]
    np.testing.assert_array_equal(found.x, [[0.0, 2.0, 0.0]])
    np.testing.assert_array_equal(found.frequencies, [0.0, 1.0, 0.0])
    found = ks.near_optimal(loss, 3, ks.Nonnegative(), forced_in=[0], within=0.99, settings=settings)
    assert [support.tolist() for support in found.supports] == [[1, 2], [1]]
    assert found.complete
