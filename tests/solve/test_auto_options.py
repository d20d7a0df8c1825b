"""Options of method="auto": seeds, threads, forced variables, starts, arrays of other kinds, ties, bad arguments."""

import numpy as np
import pytest

import catalogue
import ksparse as ks
from enumeration import enumerated


@pytest.fixture
def regression(rng):
    A = rng.standard_normal((60, 40))
    return ks.LeastSquares(A, A[:, :4] @ [3.0, -2, 1.5, 1] + 0.3 * rng.standard_normal(60))


def test_same_seed_same_answer_whatever_the_threads(regression):
    runs = [ks.minimize(regression, 6, effort=3, random_state=7, n_jobs=jobs) for jobs in (None, 1, 2, 3)]
    for other in runs[1:]:
        np.testing.assert_array_equal(other.x, runs[0].x)
        assert [row["fun"] for row in other.outcomes] == [row["fun"] for row in runs[0].outcomes]
    generators = [ks.minimize(regression, 6, effort=2, random_state=np.random.default_rng(5)) for _ in range(2)]
    np.testing.assert_array_equal(generators[0].x, generators[1].x)
    assert len(ks.minimize(regression, 6, effort=1).outcomes) == len(runs[0].outcomes) - 2


def test_forced_variables(regression):
    free = ks.minimize(regression, 4)
    np.testing.assert_array_equal(free.support, [0, 1, 2, 3])
    forced = ks.minimize(regression, 4, forced_in=[17, 30], forced_out=[0])
    assert {17, 30} <= set(forced.support)
    assert 0 not in forced.support
    assert forced.support.size <= 4
    everything = ks.minimize(regression, 2, forced_in=[5, 6])
    np.testing.assert_array_equal(everything.support, [5, 6])
    few = ks.minimize(regression, 30, forced_out=range(10, 40))
    assert few.support.max() < 10


def test_a_feasible_start_is_never_made_worse(regression, rng):
    for _ in range(5):
        x0 = np.zeros(40)
        x0[rng.choice(40, 6, replace=False)] = rng.standard_normal(6)
        assert ks.minimize(regression, 6, x0=x0, max_iter=1).fun <= regression.value(x0)
    best = ks.minimize(regression, 6)
    again = ks.minimize(regression, 6, x0=best.x)
    np.testing.assert_allclose(again.x, best.x, atol=1e-12)
    assert again.outcomes[0]["start"] == "x0"
    assert again.outcomes[0]["swaps"] == 0


def test_verbose_lists_the_starts(regression, capsys, monkeypatch):
    import logging

    monkeypatch.setattr(logging.getLogger("ksparse"), "propagate", False)
    ks.minimize(regression, 6, verbose=1)
    out = capsys.readouterr().out
    assert out.startswith("ksparse auto: LeastSquares over WholeSpace, at most 6 of 40 variables")
    assert "greedy" in out
    assert "descent" in out
    assert "all moves" in out
    assert "no single addition, removal or swap" in out


def test_other_arrays_keep_their_kind(asarray, rng):
    A, b = rng.standard_normal((30, 20)), rng.standard_normal(30)
    reference = ks.minimize(ks.LeastSquares(A, b), 4, ks.Nonnegative())
    given = asarray(b)
    result = ks.minimize(ks.LeastSquares(asarray(A), given), 4, ks.Nonnegative())
    assert type(result.x) is type(given)
    assert result.x.dtype == given.dtype
    assert result.success
    assert result.fun == pytest.approx(reference.fun, rel=1e-5)


# --- ties and degeneracy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("set_name", ["WholeSpace", "Nonnegative", "Simplex", "Hyperplane", "L2Ball"])
def test_duplicate_constant_and_zero_columns(k, set_name, rng):
    A = rng.standard_normal((20, 8))
    A[:, 3] = A[:, 0]
    A[:, 4] = -A[:, 0]
    A[:, 5] = 1.0
    A[:, 6] = 0.0
    A[:, 7] = 1.0
    loss = ks.LeastSquares(A, 2 * A[:, 0] + A[:, 1] + 1)
    C = catalogue.SETS[set_name](8)
    result = ks.minimize(loss, k, C)
    assert result.success
    assert result.fun <= enumerated(loss, C, 8, k) + 1e-8
    component = ks.minimize(ks.PrincipalComponent.from_data(A), k, ks.L2Ball())
    assert component.success
    assert component.support.size <= k


def test_fewer_useful_columns_than_seats(rng):
    A = np.zeros((20, 30))
    A[:, :3] = rng.standard_normal((20, 3))
    b = A[:, :3].sum(1)
    result = ks.minimize(ks.LeastSquares(A, b), 10)
    assert result.fun <= 1e-20
    assert set(result.support) <= {0, 1, 2}
    assert ks.minimize(ks.LeastSquares(np.zeros((5, 12)), np.ones(5)), 4).fun == pytest.approx(2.5)
    assert ks.minimize(ks.LeastSquares(A, b), 30).fun <= 1e-20


def test_k_one_and_k_n(rng):
    A, b = rng.standard_normal((50, 30)), rng.standard_normal(50)
    one = ks.minimize(ks.LeastSquares(A, b), 1)
    assert one.fun == pytest.approx(min(0.5 * (b @ b - (a @ b) ** 2 / (a @ a)) for a in A.T))
    np.testing.assert_allclose(ks.minimize(ks.LeastSquares(A, b), 30).x, np.linalg.lstsq(A, b)[0], atol=1e-9)


@pytest.mark.parametrize("loss_name", ["Logistic", "Huber", "Poisson"])
def test_generalised_linear_models_find_planted_features(loss_name, rng):
    A = rng.standard_normal((300, 60)) / 2
    eta = A[:, [3, 17, 40]] @ [2.0, -2.0, 1.5]
    loss = {
        "Logistic": lambda: ks.Logistic(A, rng.uniform(size=300) < 1 / (1 + np.exp(-4 * eta))),
        "Huber": lambda: ks.Huber(A, eta + rng.standard_t(2, 300) / 5, 0.5),
        "Poisson": lambda: ks.Poisson(A, rng.poisson(np.exp(eta))),
    }[loss_name]()
    result = ks.minimize(loss, 3)
    np.testing.assert_array_equal(result.support, [3, 17, 40])
    assert result.residual <= 1e-8


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"forced_in": [50]}, ValueError, "forced_in must be below the number of variables 40, got 50"),
        ({"forced_in": [1], "forced_out": [1]}, ValueError, "must not share a variable, both hold 1"),
        ({"forced_in": [1, 2, 3]}, ks.InfeasibleError, "3 variables are forced in, more than k = 2"),
        ({"min_nonzero": -1.0}, ValueError, "min_nonzero must be >= 0"),
        ({"effort": -1}, ValueError, "effort must be an integer >= 0"),
        ({"random_state": "a"}, TypeError, "random_state must be an integer"),
        ({"method": "apdca", "forced_in": [1]}, ValueError, "forced_in is only supported with method='auto'"),
        ({"method": "apdca", "min_nonzero": 0.1}, ValueError, "min_nonzero is only supported with method='auto'"),
        ({"method": "apdca", "effort": 2}, ValueError, "effort is only supported with method='auto'"),
        (
            {"C": ks.L2Ball(), "min_nonzero": 0.1},
            ks.MissingPieceError,
            "min_nonzero needs a convex quadratic loss and a polyhedral set",
        ),
        (
            {"C": ks.Box(np.r_[1.0, np.zeros(39)], 2.0), "forced_out": [0]},
            ks.InfeasibleError,
            "forced_out holds variable 0",
        ),
    ],
)
def test_bad_arguments_of_auto(regression, arguments, error, words):
    with pytest.raises(error, match=words):
        ks.minimize(regression, 2, **arguments)


def test_threads_do_not_change_the_answer_of_other_losses(rng):
    A = rng.standard_normal((40, 60))
    loss = ks.Logistic(A, A[:, 0] + rng.standard_normal(40) > 0)
    runs = [ks.minimize(loss, 4, effort=2, random_state=1, n_jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert [row["swaps"] for row in runs[0].outcomes] == [row["swaps"] for row in runs[1].outcomes]
