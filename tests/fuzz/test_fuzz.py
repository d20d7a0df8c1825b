"""Fixed slice of the fuzzer: its problems, its bad input, properties of its strategies, and planted errors."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from scipy.optimize import minimize

import ksparse as ks
from conftest import sweep
from fuzz.bad_input import bad_inputs, refusal
from fuzz.case import POLYHEDRA, QUADRATIC, Case, case_number
from fuzz.judge import COUNTED, FORBIDDEN, judge_claims, judge_infeasible, judge_point
from fuzz.problems import build
from fuzz.qp import solve_qp
from fuzz.region import Region
from fuzz.report import snippet
from fuzz.run import run_case, run_problem
from fuzz.strategies import cases

SEED, PROBLEMS, CHUNK = 2017, 500, 20


def test_the_twin_keeps_to_points_of_C():
    """Newton's last step may end slightly outside, where φ is lower by a rounding: the support must be kept."""
    problem = build(
        Case(
            seed=2317871865,
            loss="Poisson weighted",
            set="Polyhedron inequalities",
            n=4,
            m=5,
            k=3,
            layout="list",
            regime="zero",
        )
    )
    twin = problem.twin(3)
    assert all(twin.on(support).status == "optimal" for support in twin.supports())


@pytest.mark.parametrize("first", sweep(range(0, PROBLEMS, CHUNK), PROBLEMS // CHUNK // 2))
def test_slice(first):
    wrong = []
    for number in range(first, first + CHUNK):
        outcome = run_case(case_number(number, SEED, small=True))
        # a search without enumeration may miss a little
        refused = (
            *FORBIDDEN,
            "fuzzer",
            *(() if outcome.case.search else COUNTED),
        )
        wrong += [snippet(number, SEED, outcome, v) for v in outcome.verdicts if v.name in refused]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", sorted({row[0] for row in bad_inputs()}))
def test_bad_input_is_refused_by_name(where):
    wrong = {which: refusal(call, name) for place, which, call, name in bad_inputs() if place == where}
    assert not {which: text for which, text in wrong.items() if text}


# --- a check that cannot fail is no check: planted errors -------------------------------------------------------------

PLAIN = Case(seed=5, loss="LeastSquares", set="BudgetBox", n=6, m=9, k=2)


@pytest.fixture(scope="module")
def plain():
    """Return a problem and a correct answer to it."""
    problem = build(PLAIN)
    names = {}
    exec(problem.source, names)
    return problem, names["result"]


def verdicts(problem, result):
    return {
        verdict.name
        for verdict in judge_point(problem, result, problem.case.k) + judge_claims(problem, result, problem.case.k)
    }


def moved(problem, result, x, **more):
    x = np.asarray(x, dtype=float)
    return replace(result, x=x, fun=float(problem.phi.value(x)), support=np.flatnonzero(x), **more)


def test_a_correct_answer_passes(plain):
    problem, result = plain
    assert result.status is ks.Status.OPTIMAL
    assert verdicts(problem, result) == set()


def test_planted_points_are_found(plain):
    problem, result = plain
    two, three = np.zeros(6), np.zeros(6)
    two[:2], three[:3] = 0.5, 1 / 3
    assert "infeasible_success" in verdicts(problem, moved(problem, result, 1.001 * result.x))
    assert "infeasible_success" in verdicts(
        problem, moved(problem, result, 1.001 * result.x, status=ks.Status.TIME_LIMIT, success=False)
    )
    assert "over_k" in verdicts(problem, moved(problem, result, three))
    assert "false_optimal" in verdicts(problem, moved(problem, result, two))
    assert "false_swap" in verdicts(problem, moved(problem, result, two, status=ks.Status.SWAP_OPTIMAL))
    assert "suboptimal" in verdicts(problem, moved(problem, result, two, status=ks.Status.STATIONARY, proved=False))
    assert "nan" in verdicts(problem, replace(result, x=np.full(6, np.nan)))
    assert "wrong_fun" in verdicts(problem, replace(result, fun=result.fun * 1.001))


def test_planted_claims_are_found(plain):
    problem, result = plain
    assert "wrong_field" in verdicts(problem, replace(result, status=ks.Status.ITERATION_LIMIT))
    assert "wrong_field" in verdicts(problem, replace(result, support=np.array([0])))
    assert "wrong_field" in verdicts(problem, replace(result, gap=1.0))
    assert "wrong_field" in verdicts(problem, replace(result, x=result.x.astype(np.float32)))
    assert "gave_up" in verdicts(problem, replace(result, success=False))
    assert "false_unbounded" in verdicts(problem, replace(result, status=ks.Status.UNBOUNDED, success=False))
    assert [v.name for v in judge_infeasible(problem, ValueError(), None)] == ["false_infeasible"]
    assert "disobeyed" in verdicts(replace(problem, forced_out=tuple(result.support)), result)
    assert "disobeyed" in verdicts(replace(problem, floor=10.0), result)


def test_an_unbounded_problem_called_solved_is_found():
    problem = build(Case(seed=3, loss="Quadratic", set="WholeSpace", n=4, m=2, k=4))
    names = {}
    exec(problem.source, names)
    honest = names["result"]
    assert honest.status is ks.Status.UNBOUNDED
    assert verdicts(problem, honest) == set()
    claimed = moved(problem, honest, np.zeros(4), status=ks.Status.OPTIMAL, success=True, residual=0.0, maxcv=0.0)
    assert "missed_unbounded" in verdicts(problem, claimed)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("crash", "result = 1 / 0"),
        ("crash", "raise ValueError('k must be larger')"),
        ("false_infeasible", "raise ks.InfeasibleError('no')"),
        ("warning", "{call}; np.log(np.zeros(1))"),
        ("mutated", "{call}; A[0, 0] += 1.0"),
        (
            "irreproducible",
            "{call}; from dataclasses import replace; result = replace(result, x=result.x + 1e-12 * np.random.rand(6))",
        ),
    ],
)
def test_planted_behaviour_is_found(plain, name, call):
    problem = replace(plain[0], case=replace(PLAIN, seed=20), call=call.format(call=plain[0].call))
    assert name in {verdict.name for verdict in run_problem(problem).verdicts}


def test_the_snippet_is_what_ran(plain):
    result = plain[1]
    names = {}
    exec(
        snippet(0, 0, run_case(PLAIN), type("V", (), {"name": "none", "text": "two\nlines"})).replace(
            "print(result)", ""
        ),
        names,
    )
    np.testing.assert_array_equal(names["result"].x, result.x)


def test_the_twins_quadratic_programs_against_slsqp(rng):
    for _ in range(30):
        n, m, p = (int(v) for v in rng.integers(1, 6, 3))
        M, t, c, G = (
            rng.standard_normal((m + n, n)),
            rng.standard_normal(m + n),
            rng.standard_normal(n),
            rng.standard_normal((p, n)),
        )
        inner = rng.uniform(-1, 1, n)
        region = Region.of(n, -1.5, 1.5, G, G @ inner + rng.choice([0.0, 0.3], p), np.ones(n), inner.sum())
        ours = solve_qp(M, t, c, region)
        rows = [
            {"type": "ineq", "fun": lambda x, r=region: r.h - r.G @ x},
            {"type": "eq", "fun": lambda x, r=region: r.E @ x - r.f},
        ]

        def value(x, M=M, t=t, c=c):
            return 0.5 * float(((M @ x - t) ** 2).sum()) + float(c @ x)

        theirs = minimize(
            value,
            inner,
            method="SLSQP",
            bounds=[(-1.5, 1.5)] * n,
            constraints=rows,
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert ours.status == "optimal"
        assert region.holds(ours.x)
        assert value(ours.x) <= theirs.fun + 1e-7 * max(1.0, abs(theirs.fun))


# --- properties, on the fuzzer's own problems -------------------------------------------------------------------------


def as_polyhedron(region, order=slice(None)):
    """Return the set by its inequalities alone, its variables permuted."""
    return ks.Polyhedron(
        region.G[:, order], region.h, region.E[:, order], region.f, region.lower[order], region.upper[order]
    )


def as_quadratic(phi, order=slice(None)):
    """Return the loss from its matrices, its variables permuted."""
    if hasattr(phi, "A"):
        return ks.LeastSquares(phi.A[:, order], phi.b, phi.weight, phi.ridge[order])
    return ks.Quadratic(phi.matrix()[order][:, order], phi.c[order])


def optimum(loss, k, C):
    """Return the optimal value; drop the example if it is not proved."""
    try:
        result = ks.minimize(loss, k, C)
    except ks.InfeasibleError:
        return np.inf
    assume(result.status is ks.Status.OPTIMAL and result.success)
    return result.fun


tame = cases(losses=QUADRATIC, sets=POLYHEDRA, small=True).filter(
    lambda case: (
        case.scale == (1.0, 1.0)
        and not case.single
        and case.n <= 6
        and case.regime not in ("collinear", "columns scaled")
    )
)


@given(tame)
def test_the_order_of_the_variables_does_not_matter(case):
    problem = build(case)
    order = np.random.default_rng(case.seed).permutation(case.n)
    here = optimum(as_quadratic(problem.phi), case.k, as_polyhedron(problem.region))
    there = optimum(as_quadratic(problem.phi, order), case.k, as_polyhedron(problem.region, order))
    assert there == pytest.approx(here, rel=1e-7, abs=1e-9 * max(1.0, float(problem.phi.natural)))


@given(tame)
def test_more_seats_are_never_worse(case):
    problem = build(case)
    values = [optimum(as_quadratic(problem.phi), k, as_polyhedron(problem.region)) for k in range(1, case.n + 1)]
    slack = 1e-9 * max(1.0, float(problem.phi.natural))
    assert all(more <= less + slack + 1e-7 * abs(less) for less, more in pairwise(values) if np.isfinite(less))


@given(tame)
def test_a_power_of_two_changes_nothing_but_the_units(case):
    problem = build(case)
    assume(hasattr(problem.phi, "A") and not problem.phi.ridge.any())
    loss, C, phi = as_quadratic(problem.phi), as_polyhedron(problem.region), problem.phi
    larger = ks.LeastSquares(4.0 * phi.A, 4.0 * phi.b, phi.weight)
    assert optimum(larger, case.k, C) == pytest.approx(
        16.0 * optimum(loss, case.k, C), rel=1e-7, abs=1e-8 * float(phi.natural) + 1e-300
    )
