"""The benchmark suite: the judge on answers by hand, the problems, every contender on tiny problems."""

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))


import ksparse as ks
from ksparse.datasets import MissingDataError
from suite import command
from suite.contenders import OURS, contenders
from suite.contenders.abess_ import Abess
from suite.contenders.base import keep_largest, quietly, restarted, unit
from suite.contenders.ours import Ours
from suite.contenders.refit import along_weights, least_squares_on, logistic_on
from suite.contenders.skscope_ import Skscope
from suite.judge import judge
from suite.problem import KINDS, Problem, tiny, twin
from suite.problems import ALL, GROUPS, build, names
from suite.problems.real import drawn_returns

COMPILED = ("skglm", "El0ps")  # by Numba, for half a minute


# --- the judge ---


def test_the_judge_agrees_with_hands():
    A, b = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    plain = Problem("least squares", 1, A=A, b=b)
    assert judge(plain, [2.0, 0.0]) == judge(Problem("least squares", 1, A=scipy.sparse.csr_array(A), b=b), [2.0, 0.0])
    verdict = judge(plain, [2.0, 0.0])
    assert (verdict.objective, verdict.violation, verdict.nonzeros, verdict.feasible) == (1.0, 0.0, 1, True)
    assert judge(Problem("logistic", 1, A=A, b=b), [0.0, 0.0]).objective == pytest.approx(2 * np.log(2))
    assert judge(Problem("penalised", 1, A=A, b=b, lam=2.0), [3.0, 4.0]).objective == pytest.approx(
        0.5 * (100 + 25) + 2 * (7 - 5)
    )
    V = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert judge(Problem("portfolio", 2, V=V), [0.5, 0.5]).objective == pytest.approx(0.25 * 7)
    X = np.array([[1.0, 10.0], [2.0, 30.0], [3.0, 20.0]])  # correlation 0.5
    assert judge(Problem("component", 2, A=X), np.array([0.6, 0.8])).objective == pytest.approx(
        -(1 + 2 * 0.6 * 0.8 * 0.5)
    )


def test_the_judge_detects_errors():
    A, b = np.eye(3), np.ones(3)
    signs = Problem("least squares", 2, A=A, b=b, nonnegative=np.array([0]))
    assert judge(signs, [-0.5, 0.0, 0.0]).violation == 0.5
    assert not judge(signs, [-0.5, 0.0, 0.0]).feasible
    assert judge(signs, [0.0, -0.5, 0.0]).feasible  # no sign was asked of this one
    assert not judge(signs, [1.0, 1.0, 1.0]).feasible
    assert judge(Problem("penalised", 1, A=A, b=b), [1.0, 1.0, 1.0]).feasible  # no limit on nonzeros there
    broken = judge(signs, [np.nan, 0.0, 0.0])
    assert not broken.finite
    assert not broken.feasible
    assert np.isnan(broken.objective)
    folio = Problem("portfolio", 3, V=np.eye(3))
    assert judge(folio, [0.6, 0.6, -0.2]).violation == pytest.approx(0.2)
    assert judge(folio, [0.5, 0.4, 0.0]).violation == pytest.approx(0.1)
    assert judge(folio, [0.5, 0.5 + 1e-8, 0.0]).feasible  # within the tolerance
    assert judge(Problem("component", 2, A=np.arange(6.0).reshape(3, 2) ** 2), [1.0, 1.0]).violation == pytest.approx(
        np.sqrt(2) - 1
    )
    with pytest.raises(ValueError, match=r"x must have shape \(3,\), got \(2,\)"):
        judge(signs, [1.0, 0.0])


def test_the_judge_uses_no_piece_of_the_library():
    source = (Path(command.__file__).parent / "judge.py").read_text(encoding="utf-8")
    assert "ksparse" not in source


# --- problems ---


@pytest.mark.parametrize("group", ALL)
def test_quick_problems_can_be_rebuilt_by_name(group):
    for name in names(group, quick=True):
        try:
            problem, again = build(group, name, quick=True), build(group, name, quick=True)
        except (MissingDataError, ImportError) as error:
            pytest.skip(str(error))
        data, same = (problem.V, again.V) if problem.A is None else (problem.A, again.A)
        assert abs(data - same).max() == 0
        assert problem.kind in KINDS
        assert 0 < problem.k < problem.n
        assert str(problem.n) in problem.size
    assert len(names(group)) >= len(names(group, quick=True)) > 0


def test_the_full_catalogue_is_the_one_described():
    assert len(names("table5")) == 30
    assert len(names("table5_others")) == 70
    assert not set(names("table5")) & set(names("table5_others"))
    for group in GROUPS.values():
        assert set(group.contenders) <= {one.name for one in contenders()}
    assert len([name for name in names("knob") if name.startswith("i = ")]) == 5 * 27
    assert names("table2") == [f"i = {i}" for i in range(1, 6)]
    assert names("portfolios")[-2:] == ["S&P 476", "Tokyo 1338"]


def test_planted_data_are_those_of_the_published_comparison():
    free, signed = (build("best_subset", name, quick=True) for name in names("best_subset", quick=True))
    assert free.signs == "none"
    assert signed.signs == "all"
    assert abs(free.A.std() - 1) < 0.01
    x = Ours().solve(free, 1.0).x
    assert set(np.abs(x[x != 0]).round()) <= {1.0, 2.0, 3.0}
    assert judge(free, x).objective == pytest.approx(0.5 * 500, rel=0.15)  # noise of unit variance is left
    rows = build("sparse_csr", "planted", quick=True).A
    assert set(np.diff(rows.indptr)) == {20}
    assert rows.has_canonical_format


def test_drawn_returns_have_the_covariance_asked_for(rng):
    L = rng.standard_normal((6, 4))
    V, r = L @ L.T, rng.standard_normal(6)  # singular too
    returns = drawn_returns(V, r)
    np.testing.assert_allclose(np.cov(returns.T), V, atol=1e-10)
    np.testing.assert_allclose(returns.mean(axis=0), r, atol=1e-10)


def test_a_twin_is_like_its_problem():
    for problem in (
        tiny("least squares", "some"),
        tiny("least squares", "all"),
        tiny("least squares", sparse=True),
        tiny("portfolio"),
    ):
        other = twin(problem)
        assert (other.kind, other.signs, other.sparse) == (problem.kind, problem.signs, problem.sparse)


# --- contenders ---


def cases():
    for contender in contenders():
        for kind in () if contender.invited else contender.kinds:
            for signs in ("none", "some", "all") if kind == "least squares" else ("none",):
                if contender.takes(tiny(kind, signs)):
                    yield pytest.param(contender, kind, signs, id=f"{contender.name}-{kind}-{signs}")


@cache
def best_on(kind, signs):
    """Return a good answer to a tiny problem: by enumeration, or by pDCAe without a limit on nonzeros."""
    problem = tiny(kind, signs)
    if kind == "penalised":
        return ks.minimize_penalized(
            ks.LeastSquares(problem.A, problem.b), ks.L1MinusL2(problem.lam), method="pdcae", tol=1e-9
        ).x
    return Ours().solve(problem, 5.0).x


@pytest.fixture(autouse=True)
def leave_jax_as_it_was():
    """Restore JAX's precision: contenders with JAX set float64, and here other tests follow in the same process."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


@pytest.mark.parametrize(("contender", "kind", "signs"), list(cases()))
def test_every_contender_that_is_there_solves_a_tiny_problem(contender, kind, signs):
    if contender.missing():
        pytest.skip(contender.missing())
    if contender.name.startswith(COMPILED) and not os.environ.get("KSPARSE_SLOW"):
        pytest.skip("compiles for long: set KSPARSE_SLOW=1")
    problem = tiny(kind, signs)
    quietly(contender.load)
    answer = quietly(contender.solve, problem, 5.0)
    verdict = judge(problem, answer.x)
    assert verdict.finite
    assert verdict.feasible or ("ignores" in answer.note and verdict.nonzeros <= problem.k)
    good = judge(problem, best_on(kind, signs)).objective
    assert verdict.objective <= good + (0.3 if kind == "component" else 0.05) * abs(good)
    if contender.name == OURS:
        assert verdict.violation <= 1e-12
        assert verdict.objective <= good + 1e-3 * abs(good)


def test_searches_again_while_there_is_time():
    asked, values = [], iter([3.0, 2.0, 5.0])

    def again(start):
        asked.append(start)
        value = next(values, 4.0)
        return value, value

    problem = tiny("least squares")
    assert restarted(again, problem, 0.01) == 2.0  # the best of them
    assert asked[0] is None  # the default start first
    assert all(len(set(start)) == problem.k for start in asked[1:])
    assert restarted(lambda start: (1.0, 1.0), problem, 0.0) == 1.0  # once at least
    few = (
        Abess("abess, soon", budget=0.05),
        Skscope("scope, soon", "ScopeSolver", ("least squares",), budget=0.05),
        Ours("ours", {"effort": 2}),
    )
    for one in few:
        if not one.missing():
            quietly(one.load)
            assert judge(problem, quietly(one.solve, problem, 5.0).x).feasible


def test_some_contenders_run_only_where_they_are_named():
    invited = {one.name for one in contenders() if one.invited}
    assert "ksparse, effort 16" in invited
    assert invited <= {name for group in ("knob", "effort", "proofs", "gaps") for name in GROUPS[group].contenders}
    assert not invited & {one.name for one in command._of("table5")}
    assert {one.name for one in command._of("knob")} == set(GROUPS["knob"].contenders)


def test_contenders_for_sparse_matrices_solve_them():
    problem = tiny("least squares", sparse=True)
    takers = [
        one
        for one in contenders()
        if one.takes(problem) and not one.invited and not one.missing() and not one.name.startswith(COMPILED)
    ]
    assert OURS in [one.name for one in takers]
    for one in takers:
        assert judge(problem, quietly(one.solve, problem, 5.0).x).nonzeros == problem.k


def test_listing_contenders_imports_none_of_their_libraries():
    assert len({(one.name, one.kinds) for one in contenders()}) == len(contenders())
    for kind in KINDS:
        # rows and floors few can take
        assert sum(kind in one.kinds for one in contenders()) >= (3 if kind == "rows" else 5)


def test_weights_are_sought_until_k_variables_are_in():
    c = np.array([5.0, 4.0, 3.0, 3.0, 1.0])
    soft = lambda weight: np.where(c > weight, c - weight, 0.0)  # noqa: E731
    below, above = along_weights(soft, 5.0, 2)
    assert np.count_nonzero(below) == 2
    below, above = along_weights(soft, 5.0, 3)  # two enter together
    assert (np.count_nonzero(below), np.count_nonzero(above)) == (2, 4)
    below, _ = along_weights(soft, 0.5, 2)  # a start that is too low
    assert np.count_nonzero(below) == 2


def test_refits_minimise_on_the_support():
    problem = tiny("logistic")
    x = np.zeros(problem.n)
    x[[2, 7]] = 1.0
    w = logistic_on(problem, x)
    gradient = -problem.A.T @ (problem.b / (1 + np.exp(problem.b * (problem.A @ w))))
    np.testing.assert_allclose(gradient[[2, 7]], 0.0, atol=1e-4)
    assert set(np.flatnonzero(w)) == {2, 7}
    dense, sparse = tiny("least squares"), tiny("least squares", sparse=True)
    for one in (dense, sparse):
        r = one.A @ least_squares_on(one, x) - one.b
        np.testing.assert_allclose((one.A.T @ r)[[2, 7]], 0.0, atol=1e-10)
    assert least_squares_on(Problem("least squares", 2, A=dense.A, b=-dense.b), x, nonnegative=True).min() == 0.0
    np.testing.assert_array_equal(keep_largest(np.array([1.0, -3.0, 2.0]), 2), [0.0, -3.0, 2.0])
    np.testing.assert_array_equal(unit(np.zeros(2)), np.zeros(2))
