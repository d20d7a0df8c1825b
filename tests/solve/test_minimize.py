"""minimize and minimize_penalized: k-sparse, feasible, KKT on the support, checked independently."""

import numpy as np
import pytest

import catalogue
import ksparse as ks
from conftest import MATRIX_KINDS, data_file
from ksparse import Status
from ksparse.util.arrays import to_numpy

PAIRS = [
    (loss, C)
    for loss in (
        "LeastSquares",
        "LeastSquares weighted",
        "Quadratic",
        "MeanVariance",
        "Logistic",
        "Huber",
        "Poisson",
        "Custom",
    )
    for C in catalogue.SETS
]


def independent_residual(loss, C, x):
    """Return the KKT residual on the support: projected gradient step of the restricted problem, gradient scale 1."""
    support = np.flatnonzero(x)
    cut, on = loss.restrict(support), C.restrict(support)
    g = cut.gradient(x[support])
    step = 1e-3 * max(1.0, np.abs(x).max()) / max(np.linalg.norm(g), 1e-300)
    moved = on.project(x[support] - step * g)
    return (
        np.linalg.norm(moved - x[support])
        / step
        / max(np.linalg.norm(cut.gradient(np.zeros(support.size))), np.linalg.norm(g))
    )


@pytest.mark.parametrize(("loss_name", "set_name"), PAIRS)
@pytest.mark.parametrize("method", ["pdca", "apdca"])
def test_rounded_answers_are_sparse_feasible_and_stationary(loss_name, set_name, method):
    loss = {**catalogue.LOSSES, **catalogue.FREE_LOSSES}[loss_name](np.random.default_rng(1), lambda A: A)
    C, k = catalogue.SETS[set_name](catalogue.N), 3
    result = ks.minimize(loss, k, C, method=method, rho=0.5)
    x = result.x
    assert result.success, result
    assert np.count_nonzero(x) <= k
    assert result.support.tolist() == np.flatnonzero(x).tolist()
    assert C.violation(x) <= 1e-9
    assert result.maxcv == C.violation(x)
    assert result.fun == loss.value(x)
    assert result.residual <= 1e-8
    slack = 1e-5 if "Custom" in set_name or "Polyhedron" in set_name else 1e-6  # their projections are iterative
    assert independent_residual(loss, C, x) <= slack


@pytest.mark.parametrize("set_name", ["L2Ball", "Box", "Simplex"])
@pytest.mark.parametrize("loss_name", ["PrincipalComponent", "Quadratic indefinite"])
def test_concave_and_indefinite_losses_on_bounded_sets(loss_name, set_name):
    loss = catalogue.LOSSES[loss_name](np.random.default_rng(1), lambda A: A)
    result = ks.minimize(loss, 3, catalogue.SETS[set_name](catalogue.N), rho=0.5)
    assert result.success
    assert result.support.size <= 3
    assert result.residual <= 1e-6


@pytest.mark.parametrize("method", ["pdca", "apdca", "pdcae", "gist", "nmapg", "iht"])
def test_every_method_finds_a_planted_support(method, rng):
    A = rng.standard_normal((100, 20))
    x = np.zeros(20)
    x[[3, 8, 15]] = [2.0, -3.0, 1.5]
    result = ks.minimize(ks.LeastSquares(A, A @ x), 3, method=method, rho=1.0)
    np.testing.assert_allclose(result.x, x, atol=1e-10)
    assert result.method == method
    assert result.rho == (None if method == "iht" else 1.0)


def test_rho_may_be_a_number_a_sequence_or_the_papers_grid(rng):
    loss = ks.LeastSquares(rng.standard_normal((30, 12)), rng.standard_normal(30))
    one = ks.minimize(loss, 3, rho=0.1, method="apdca")
    several = ks.minimize(loss, 3, rho=[0.01, 0.1, 1.0], method="apdca")
    grid = ks.minimize(loss, 3, rho="auto", method="apdca")
    assert [row["rho"] for row in several.outcomes] == [0.01, 0.1, 1.0]
    assert [row["rho"] for row in grid.outcomes] == [10.0**i for i in range(-4, 5)]
    assert one.fun == pytest.approx(several.outcomes[1]["fun"])
    assert several.fun == min(row["fun"] for row in several.outcomes)
    assert grid.fun == min(row["fun"] for row in grid.outcomes)


def test_continuation_starts_each_weight_where_the_last_one_ended(rng):
    loss = ks.LeastSquares(rng.standard_normal((30, 60)), rng.standard_normal(30))
    cold = ks.minimize(loss, 5, method="apdca", rho=[0.1, 1.0])
    warm = ks.minimize(loss, 5, method="apdca", rho=[0.1, 1.0], continuation=True)
    assert cold.outcomes[0]["nit"] == warm.outcomes[0]["nit"]
    assert cold.outcomes[1]["nit"] != warm.outcomes[1]["nit"]
    assert warm.success


@pytest.mark.parametrize("kind", MATRIX_KINDS)
def test_dense_sparse_and_operator_give_the_same_answer(kind, rng):
    A = rng.standard_normal((60, 15)) * (rng.uniform(size=(60, 15)) < 0.5)
    b = A[:, 0] - 2 * A[:, 4] + 0.1 * rng.standard_normal(60)
    reference = ks.minimize(ks.LeastSquares(A, b), 4, rho=1.0)
    result = ks.minimize(ks.LeastSquares(MATRIX_KINDS[kind](A), b), 4, rho=1.0)
    np.testing.assert_allclose(result.x, reference.x, atol=1e-10)


def test_other_arrays_keep_kind_and_agree(asarray, rng):
    A, b = rng.standard_normal((40, 10)), rng.standard_normal(40)
    reference = ks.minimize(ks.LeastSquares(A, b), 3, ks.Simplex(), rho=1.0)
    given = asarray(b)
    result = ks.minimize(ks.LeastSquares(asarray(A), given), 3, ks.Simplex(), rho=1.0)
    assert type(result.x) is type(given)
    assert result.x.dtype == given.dtype
    assert result.success
    np.testing.assert_allclose(to_numpy(result.x), reference.x, atol=1e-9 if "64" in str(given.dtype) else 1e-5)


def test_float32_is_close_to_float64(rng):
    A, b = rng.standard_normal((80, 25)), rng.standard_normal(80)
    for penalty in (ks.L1(3.0), ks.MCP(3.0, 1.0)):
        double = ks.minimize_penalized(ks.LeastSquares(A, b), penalty)
        single = ks.minimize_penalized(ks.LeastSquares(A.astype(np.float32), b), penalty)
        assert single.x.dtype == np.float32
        np.testing.assert_allclose(single.x, double.x, atol=1e-3)


def test_permutation_of_the_variables(rng):
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    order = rng.permutation(20)
    straight = ks.minimize(ks.LeastSquares(A, b), 5, rho=1.0)
    permuted = ks.minimize(ks.LeastSquares(A[:, order], b), 5, rho=1.0)
    np.testing.assert_allclose(permuted.x, straight.x[order], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("method", ["pdca", "apdca", "pdcae", "gist", "nmapg"])
def test_scaling_the_data_scales_the_answer(scale, method, rng):
    """A and b in other units give the same x, with the weight in its units too."""
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    plain = ks.minimize(ks.LeastSquares(A, b), 5, method=method, rho=1.0)
    scaled = ks.minimize(ks.LeastSquares(A * scale, b * scale), 5, method=method, rho=scale**2)
    np.testing.assert_allclose(scaled.x, plain.x, atol=1e-7)
    penalised = ks.minimize_penalized(
        ks.LeastSquares(A * scale, b * scale), ks.L1(3.0 * scale**2), method=method, tol=1e-9
    )
    reference = ks.minimize_penalized(ks.LeastSquares(A, b), ks.L1(3.0), method=method, tol=1e-9)
    np.testing.assert_allclose(penalised.x, reference.x, atol=2e-4)


def test_inputs_are_untouched(rng):
    A, b, x0 = rng.standard_normal((30, 8)), rng.standard_normal(30), rng.standard_normal(8)
    w, low = rng.uniform(0, 1, 30), -np.ones(8)
    kept = [v.copy() for v in (A, b, x0, w, low)]
    for v in (A, b, x0, w, low):
        v.setflags(write=False)  # a write would raise
    for method in ("pdca", "apdca", "pdcae"):
        ks.minimize(ks.LeastSquares(A, b, sample_weight=w), 3, ks.Box(low, 1.0), x0=x0, method=method, rho=1.0)
    for given, before in zip((A, b, x0, w, low), kept, strict=True):
        np.testing.assert_array_equal(given, before)


def test_forced_variables_and_budgets_are_obeyed_exactly(rng):
    V, r = np.cov(rng.standard_normal((50, 12)).T), rng.standard_normal(12) / 100
    loss = ks.MeanVariance(V, r, 5.0)
    forced = ks.minimize(loss, 4, ks.Box(np.where(np.arange(12) == 11, 0.3, -1.0), 1.0), rho=1.0)
    assert forced.x[11] >= 0.3
    capped = ks.minimize(loss, 4, ks.BudgetBox(1.0, 0.0, 0.3), rho=1.0)
    assert capped.support.size == 4
    assert abs(capped.x.sum() - 1) <= 1e-15
    assert capped.x.max() <= 0.3
    target = ks.Polyhedron(None, None, np.vstack([np.ones(12), r]), [1.0, r.mean()], lower=0.0)
    met = ks.minimize(loss, 4, target, rho=1.0)
    assert met.maxcv <= 1e-12
    assert r @ met.x == pytest.approx(r.mean(), abs=1e-14)


def test_k_equal_to_n_is_the_plain_problem(rng):
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    np.testing.assert_allclose(ks.minimize(ks.LeastSquares(A, b), 6, rho=1.0).x, np.linalg.lstsq(A, b)[0], atol=1e-10)


def test_more_variables_than_rows_on_the_support(rng):
    """For a singular restricted problem any minimiser is correct, without warnings."""
    A, b = rng.standard_normal((5, 30)), rng.standard_normal(5)
    result = ks.minimize(ks.LeastSquares(A, b), 10, rho=1.0)
    assert result.fun <= 1e-20
    duplicate = np.repeat(A[:, :3], 3, axis=1)
    assert ks.minimize(ks.LeastSquares(duplicate, b), 5, rho=1.0).success
    assert ks.minimize(ks.LeastSquares(np.zeros((5, 4)), b), 2, rho=1.0).success


def test_pit_props_as_in_the_papers_box_plot():
    R = np.load(data_file("pitprops_jeffers1967.npz"))["R"]
    for method in ("pdca", "apdca"):
        result = ks.minimize(ks.PrincipalComponent(R), 5, ks.L2Ball(), method=method, rho=1.0)
        assert result.fun == pytest.approx(-3.4062, abs=5e-3)
        assert np.linalg.norm(result.x) <= 1.0 + 1e-12


def test_repr_is_a_summary(rng):
    text = repr(ks.minimize(ks.LeastSquares(rng.standard_normal((30, 8)), rng.standard_normal(30)), 3, rho=1.0))
    assert "nonzeros: 3 (k = 3)" in text
    assert "status: OPTIMAL: proved optimal" in text
    assert len(text.splitlines()) == 13


def test_status_members_carry_their_sentence():
    assert all(status.message for status in Status)
    assert Status.UNBOUNDED.message == "the objective is unbounded below over C"
    assert [int(status) for status in Status] == list(range(len(Status)))


def test_outcomes_say_whether_the_methods_own_point_was_k_sparse(rng):
    loss = ks.LeastSquares(rng.standard_normal((60, 20)), rng.standard_normal(60))
    weak, strong = ks.minimize(loss, 3, method="apdca", rho=[1e-8, 1e8]).outcomes
    assert (weak["k_sparse"], strong["k_sparse"]) == (False, True)
    assert np.count_nonzero(np.abs(ks.minimize_penalized(loss, ks.TopK2(1e-8, 3)).x) > 1e-5) == 20
    result = ks.minimize(loss, 3, method="apdca", rho=[1e-8, 1e8])  # both are rounded: the better value counts
    assert result.fun == min(weak["fun"], strong["fun"])
    assert [row["k_sparse"] for row in ks.minimize(loss, 3, method="iht").outcomes] == [True]


def test_sentences_of_stationary_and_settled_are_true_whatever_stopped_the_run(rng):
    loss = ks.Logistic(rng.standard_normal((60, 20)), np.arange(60) % 2)
    runs = [ks.minimize_penalized(loss, ks.L1(0.5), tol=0, tol_residual=tol) for tol in (1e-1, 1e-4, 1e-8)]
    runs += [ks.minimize(loss, 3, method="l1pdca", rho=rho, tol=tol) for rho in (1e-3, 10.0) for tol in (1e-2, 1e-12)]
    assert {run.status for run in runs} == {Status.SETTLED, Status.STATIONARY}
    for run in runs:
        assert run.message == run.status.message
        assert ("residual above 1e-6" in run.message) == (run.residual > 1e-6)
        assert ("residual at most 1e-6" in run.message) == (run.residual <= 1e-6)


@pytest.mark.parametrize("how", [{}, {"gap": 0.01}, {"method": "apdca"}, {"C": ks.Box(-1.0, 1.0)}], ids=str)
def test_with_no_nonzeros_the_answer_is_zero_and_proved(how):
    A, b = np.arange(12.0).reshape(4, 3), np.ones(4)
    found = ks.minimize(ks.LeastSquares(A, b), 0, **how)
    assert not found.x.any()
    assert (found.status, found.fun, found.lower_bound) == (ks.Status.OPTIMAL, 2.0, 2.0)
    assert not ks.minimize_many(A, np.column_stack([b, -b]), 0, how.get("C")).x.toarray().any()


@pytest.mark.parametrize(
    "how",
    [{"C": ks.Simplex()}, {"C": ks.Box(0.5, 1.0)}, {"forced_in": [1]}, {"method": "iht", "C": ks.Hyperplane()}],
    ids=str,
)
def test_with_no_nonzeros_a_set_without_zero_is_infeasible(how):
    with pytest.raises(ks.InfeasibleError):
        ks.minimize(ks.LeastSquares(np.eye(3), np.ones(3)), 0, **how)
