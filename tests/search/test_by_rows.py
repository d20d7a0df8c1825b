"""Searches over rows of a matrix (targets or classes with common features) against independent enumeration."""

from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import ksparse as ks
from ksparse.losses.multinomial import SoftmaxRows, softmax
from ksparse.result import Status

SEARCHED = ks.SearchSettings(enumerated=0)  # no support is found by trying all


def responses(rng, m=30, n=9, t=3):
    A = rng.standard_normal((m, n)) + 0.7 * rng.standard_normal((m, 1))
    return A, A[:, :4] @ rng.standard_normal((4, t)) + rng.standard_normal((m, t))


def best_squares(A, B, k, weight=None, ridge=0.0):
    """Return the least ½Σ w‖…‖² + ½ρ‖X‖² over all sets of k columns, by normal equations."""
    w = np.ones(len(A)) if weight is None else weight

    def value(S):
        X = np.linalg.solve(A[:, S].T @ (w[:, None] * A[:, S]) + ridge * np.eye(len(S)), A[:, S].T @ (w[:, None] * B))
        return 0.5 * np.sum(w[:, None] * (A[:, S] @ X - B) ** 2) + 0.5 * ridge * np.sum(X**2)

    return min((value(list(S)), S) for S in combinations(range(A.shape[1]), k))


def chosen(loss, result):
    return np.flatnonzero(np.asarray(loss.matrix(result.x)).any(axis=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["plain", "weight", "ridge"])
def test_several_targets_are_those_of_enumeration(how, seed):
    rng = np.random.default_rng(seed)
    A, B = responses(rng, t=int(rng.integers(2, 14)))  # more targets than features too
    more = {"weight": rng.uniform(0, 3, len(A))} if how == "weight" else {"ridge": 2.0} if how == "ridge" else {}
    value, S = best_squares(A, B, 3, **more)
    loss = ks.MultiResponse(A, B, more.get("weight"), more.get("ridge", 0.0))
    tried, searched = ks.minimize(loss, 3), ks.minimize(loss, 3, settings=SEARCHED)
    assert tried.status is Status.OPTIMAL
    assert searched.status is Status.STATIONARY  # a search proves nothing
    for result in (tried, searched):
        assert result.success
        assert result.fun == pytest.approx(value, rel=1e-12)
        assert tuple(chosen(loss, result)) == S
        assert result.fun == pytest.approx(loss.value(result.x), rel=1e-14)


def test_the_tree_proves_the_same_by_entries(rng):
    A, B = responses(rng)
    loss = ks.MultiResponse(A, B)
    by_rows, by_entries = ks.minimize(loss, 3), ks.minimize(loss, 3, gap=1e-6, settings=SEARCHED)
    assert by_entries.status is Status.OPTIMAL
    assert by_entries.fun == pytest.approx(by_rows.fun, rel=1e-6)
    assert by_entries.lower_bound <= by_rows.fun * (1 + 1e-12)


def test_signs_and_bounds_hold_in_every_column(rng):
    A, B = responses(rng)
    loss = ks.MultiResponse(A, B)
    values = []
    for S in combinations(range(9), 2):
        values.append(sum(0.5 * scipy.optimize.nnls(A[:, list(S)], b)[1] ** 2 for b in B.T))
    result = ks.minimize(loss, 2, ks.Nonnegative())
    assert result.x.min() >= 0
    assert chosen(loss, result).size <= 2
    assert result.fun == pytest.approx(min(values), rel=1e-9)
    boxed = ks.minimize(loss, 2, ks.Box(-0.3, 0.3))
    assert np.abs(boxed.x).max() <= 0.3
    assert boxed.success


def test_kinds_of_data_and_single_precision_agree(rng):
    A, B = responses(rng)
    A[np.abs(A) < 0.5] = 0.0
    reference = ks.minimize(ks.MultiResponse(A, B), 3)
    for data in (scipy.sparse.csr_array(A), aslinearoperator(A), ks.blocks(A, height=7)):
        result = ks.minimize(ks.MultiResponse(data, B), 3, settings=SEARCHED)
        np.testing.assert_allclose(result.x, reference.x, rtol=1e-8, atol=1e-10)
    single = ks.minimize(ks.MultiResponse(A.astype(np.float32), B), 3)
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, reference.x, rtol=1e-3, atol=1e-4)


def test_dependent_columns_and_perfect_fits(rng):
    A, _ = responses(rng)
    A = np.hstack([A, A[:, :3], np.zeros((30, 1))])
    B = A[:, [1, 4]] @ rng.standard_normal((2, 3))
    loss = ks.MultiResponse(A, B)
    for settings in (None, SEARCHED):
        result = ks.minimize(loss, 3, settings=settings)
        assert result.success
        assert result.fun <= 1e-20 * loss.value(np.zeros(loss.n))
    assert ks.minimize(loss, 13, settings=SEARCHED).success


def test_scale_does_not_matter(rng):
    A, B = responses(rng)
    loss = ks.minimize(ks.MultiResponse(A, B), 3, settings=SEARCHED)
    for size in (1e-8, 1e8):
        twin = ks.minimize(ks.MultiResponse(A * size, B), 3, settings=SEARCHED)
        np.testing.assert_allclose(twin.x * size, loss.x, rtol=1e-9, atol=1e-12)


def test_forced_features_rules_paths_and_starts(rng):
    A, B = responses(rng)
    loss = ks.MultiResponse(A, B)
    forced = ks.minimize(loss, 3, forced_in=[8], forced_out=[0], settings=SEARCHED)
    assert 8 in chosen(loss, forced)
    assert 0 not in chosen(loss, forced)
    path = ks.k_path(loss, [1, 2, 3, 5])
    for result in path.results:
        assert result.fun == pytest.approx(best_squares(A, B, result.k)[0], rel=1e-11)
    grouped = ks.minimize(loss, 2, groups=np.arange(9) // 3, settings=SEARCHED)
    values = {S: best_squares(A[:, np.isin(np.arange(9) // 3, S)], B, 6)[0] for S in combinations(range(3), 2)}
    assert grouped.fun == pytest.approx(min(values.values()), rel=1e-12)
    limited = ks.minimize(loss, 3, group_limits=(np.arange(9) < 4, {True: (0, 1)}), settings=SEARCHED)
    assert (chosen(loss, limited) < 4).sum() <= 1
    again = ks.minimize(loss, 3, x0=path[3].x, settings=SEARCHED)
    assert again.fun <= path[3].fun * (1 + 1e-12)


def test_more_effort_is_never_worse_and_seeds_repeat(rng):
    A, B = responses(rng, m=60, n=40, t=4)
    loss = ks.MultiResponse(A, B)
    values = [
        ks.minimize(loss, 6, effort=effort, random_state=3, n_jobs=jobs).fun
        for effort, jobs in ((1, None), (3, None), (3, 2))
    ]
    assert values[0] >= values[1] == values[2]


def test_limits_and_callbacks(rng):
    A, B = responses(rng, m=60, n=40, t=4)
    loss, seen = ks.MultiResponse(A, B), []
    ks.minimize(loss, 6, callback=lambda x: seen.append(x.shape))
    assert set(seen) == {(160,)}
    late = ks.minimize(loss, 6, max_time=0.0)
    assert late.status is Status.TIME_LIMIT
    assert chosen(loss, late).size <= 6


def multinomial_twin(A, y, k, ridge):
    """Return the least multinomial loss over all sets of k columns, by BFGS of SciPy on the definition."""
    labels = np.unique(y)

    def value(flat, S):
        X = flat.reshape(len(S), len(labels))
        Z = A[:, S] @ X
        each = scipy.special.logsumexp(Z, axis=1) - Z[np.arange(len(y)), np.searchsorted(labels, y)]
        return each.sum() + 0.5 * np.sum(ridge[list(S)][:, None] * X**2)

    def solved(S):
        return scipy.optimize.minimize(
            value, np.zeros(len(S) * len(labels)), args=(list(S),), method="BFGS", options={"gtol": 1e-8}
        ).fun

    return min((solved(S), S) for S in combinations(range(A.shape[1]), k))


@pytest.mark.parametrize("seed", range(2))
def test_several_classes_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    A, _ = responses(rng, m=40, n=6)
    y = np.array(["a", "b", "c"])[np.argmax(A[:, :3] + 0.8 * rng.standard_normal((40, 3)), axis=1)]
    ridge = np.linspace(0.1, 1.0, 6)
    value, S = multinomial_twin(A, y, 2, ridge)
    loss = ks.Multinomial(A, y, ridge=ridge)
    for settings in (None, SEARCHED):
        result = ks.minimize(loss, 2, settings=settings)
        assert result.success
        assert result.status is Status.STATIONARY  # nothing is proved
        assert result.fun == pytest.approx(value, rel=1e-7)
        assert tuple(chosen(loss, result)) == S
        np.testing.assert_allclose(loss.matrix(result.x).sum(axis=1), 0.0, atol=1e-10)


def test_two_classes_are_the_logistic_loss_with_twice_the_ridge(rng):
    A, _ = responses(rng)
    y = (A[:, 0] - A[:, 5] + rng.standard_normal(30) > 0).astype(float)
    both = ks.minimize(ks.Multinomial(A, y, ridge=1.0), 2)
    one = ks.minimize(ks.Logistic(A, y, ridge=0.5), 2)  # x = difference of the columns, half of it each
    assert both.fun == pytest.approx(one.fun, rel=1e-9)
    X = both.x.reshape(-1, 2)
    np.testing.assert_allclose(X[:, 1] - X[:, 0], one.x, rtol=1e-5, atol=1e-7)


def test_classes_weights_are_repetitions_and_kinds_of_data_agree(rng):
    A, _ = responses(rng, m=40, n=6)
    y, weight = rng.integers(0, 3, 40), rng.integers(0, 3, 40).astype(float)
    y[:3], weight[:3] = [0, 1, 2], 1.0
    rows = np.repeat(np.arange(40), weight.astype(int))
    weighted = ks.minimize(ks.Multinomial(A, y, weight, ridge=0.3), 2)
    repeated = ks.minimize(ks.Multinomial(A[rows], y[rows], ridge=0.3), 2)
    np.testing.assert_allclose(weighted.x, repeated.x, rtol=1e-6, atol=1e-8)
    for data in (scipy.sparse.csc_array(A), aslinearoperator(A), ks.blocks(A, height=7)):
        other = ks.minimize(ks.Multinomial(data, y, weight, ridge=0.3), 2)
        np.testing.assert_allclose(other.x, weighted.x, rtol=1e-6, atol=1e-8)


def test_separable_classes_without_a_ridge_end_at_a_perfect_fit(rng):
    A = rng.standard_normal((60, 6))
    y = np.digitize(A[:, 2], [-0.5, 0.5])
    A[:, 3], A[:, 4] = A[:, 2] ** 2, 1.0
    loss = ks.Multinomial(A, y)
    result = ks.minimize(loss, 3)
    assert np.isfinite(result.x).all()
    assert result.fun < 1e-3 * loss.value(np.zeros(loss.n))


def test_gains_of_rows_are_those_of_the_second_order_model(rng):
    A, _ = responses(rng, m=40, n=6)
    y = rng.integers(0, 4, 40)
    loss = ks.Multinomial(A, y, ridge=0.5)
    wide, S = loss.row_problem(), np.array([1, 4])
    X = wide.solve(S, None).X
    full = np.zeros((6, 4))
    full[S] = X
    model = loss.model_at(full.ravel())

    def least(support):  # of the model on whole rows
        entries = (np.asarray(support)[:, None] * 4 + np.arange(4)).ravel()
        H, r = model.block(entries), model.r[entries]
        return model.constant - 0.5 * r @ np.linalg.lstsq(H, r, rcond=None)[0]

    gains, here = wide.gains(S, X), least(S)
    for place, i in enumerate([0, 2, 3, 5]):
        assert gains.adds()[i] == pytest.approx(here - least([1, 4, i]), rel=1e-5)
        for j in range(2):
            swapped = [S[1 - j], i]
            assert gains.swaps(np.array([0, 2, 3, 5]))[j, place] == pytest.approx(
                here - least(swapped), rel=1e-5, abs=1e-7
            )
    assert gains.drops() == pytest.approx([least([4]) - here, least([1]) - here], rel=1e-5)


def test_softmax_of_huge_scores_is_finite():
    Z = np.array([[1e4, 0.0, -1e4], [700.0, 710.0, 720.0]])
    assert np.isfinite(softmax(Z)).all()
    np.testing.assert_allclose(softmax(Z).sum(axis=1), 1.0)
    wide = SoftmaxRows(ks.Multinomial(np.eye(3), [0, 1, 2]).design, np.eye(3), None, np.zeros(3))
    assert wide.Q.shape == (3, 2)
    np.testing.assert_allclose(wide.Q.T @ np.ones(3), 0.0, atol=1e-15)


def test_impossible_arguments_are_errors(rng):
    A, B = responses(rng)
    loss, y = ks.MultiResponse(A, B), rng.integers(0, 3, 30)
    for wrong, message in (
        (lambda: ks.MultiResponse(A, B[:, 0]), "one column per target"),
        (lambda: ks.MultiResponse(A, B[:9]), "as many rows as A, 30, got 9"),
        (lambda: ks.MultiResponse(A, np.where(B > 0, np.nan, B)), "B must"),
        (lambda: ks.MultiResponse(A, B, ridge=-1.0), "ridge must be >= 0"),
        (lambda: ks.MultiResponse(A, B, -np.ones(30)), "sample_weight must be >= 0"),
        (lambda: ks.Multinomial(A, y[:9]), "y must have length 30"),
        (lambda: ks.Multinomial(A, np.zeros(30)), "at least two classes"),
        (lambda: ks.Multinomial(A, y, classes=[0, 1]), "none of the classes"),
        (lambda: ks.Multinomial(A, y[:, None]), "y must be a vector"),
        (lambda: ks.minimize(loss, 10), "k must be"),
        (lambda: ks.minimize(loss, 2, forced_in=[9]), "number of features 9"),
        (lambda: ks.minimize(loss, 1, forced_in=[0, 1]), "2 features are forced in"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    for wrong, message in (
        (lambda: ks.minimize(loss, 2, method="apdca"), "method='auto'"),
        (lambda: ks.near_optimal(loss, 2), "counts features"),
        (
            lambda: ks.minimize(loss, 2, ks.Nonnegative(), groups=np.arange(9)),
            "groups with MultiResponse cannot be combined",
        ),
    ):
        with pytest.raises(ks.MissingPieceError, match=message):
            wrong()


def test_a_loss_of_the_users_with_two_coefficients_per_feature_is_searched_in_groups(rng):
    A, B = responses(rng, n=6, t=2)

    class Own(ks.Loss):
        convex, n, per_feature = True, 12, 2

        def image(self, x):
            return (A @ x.reshape(6, 2)).ravel()

        def value_at(self, x, image):
            return 0.5 * float(np.sum((image - B.ravel()) ** 2))

        def gradient_at(self, x, image):
            return (A.T @ (image - B.ravel()).reshape(-1, 2)).ravel()

        def curvature_at(self, x, image, d, image_d):
            return float(image_d @ image_d)

        def lipschitz(self):
            return float(np.linalg.norm(A, 2) ** 2)

    result = ks.minimize(Own(), 2)
    assert result.success
    assert result.k == 2
    assert result.fun == pytest.approx(best_squares(A, B, 2)[0], rel=1e-6)
    with pytest.raises(ks.MissingPieceError, match="show their columns"):
        ks.minimize(ks.MultiResponse(aslinearoperator(scipy.sparse.eye_array(5_000)), np.ones((5_000, 2))), 2)


def test_of_the_support_itself_only_rounding_is_left():
    """The intercept is always in the support: adding it once more gives a singular system."""
    rng = np.random.default_rng(672)
    m, n = int(rng.integers(20, 100)), int(rng.integers(3, 10))
    X = rng.standard_normal((m, n))
    y = np.argmax(X[:, :3] + 0.5 * rng.standard_normal((m, 3)), 1)
    loss = ks.Multinomial(np.hstack([X, np.ones((m, 1))]), y, ridge=np.append(np.full(n, 1e-2), 0.0))
    assert np.isfinite(ks.k_path(loss, [2, 4], forced_in=[n]).objective).all()


@pytest.mark.parametrize("C", [None, ks.Nonnegative(), ks.Box(-1e12, np.inf), ks.Hyperplane(np.r_[1.0, np.zeros(8)])])
@pytest.mark.parametrize("seed", range(4))
def test_what_all_classes_share_stays_small(seed, C):
    """A constant added to a row of X changes nothing: rounding must not drive X, and with it the value, that way."""
    rng = np.random.default_rng(seed)
    A, y = 1e-3 * rng.standard_normal((12, 3)), np.append([0, 1, 2], rng.integers(0, 3, 9))
    free, found = ks.minimize(ks.Multinomial(A, y), 3), ks.minimize(ks.Multinomial(A, y), 3, C, gap=1e-3)
    assert np.abs(found.x).max() <= 20 * np.abs(free.x).max()
    assert found.fun == pytest.approx(free.fun, rel=1e-9)
