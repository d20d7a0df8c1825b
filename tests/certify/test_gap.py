"""`gap=` in every function: what is proved, the message where no proof is possible, and results after a limit."""

import importlib
import json
import logging

import numpy as np
import pytest

import ksparse as ks
from conftest import sweep
from ksparse.cli import main
from ksparse.datasets import pit_props
from ksparse.numerics import relaxation

SEARCHED = ks.SearchSettings(enumerated=0)


@pytest.fixture
def risk(rng):
    returns = 0.01 * (rng.standard_normal((300, 40)) * rng.uniform(0.5, 1.5, 40) + 0.7 * rng.standard_normal((300, 1)))
    return np.cov(returns.T)


def test_a_portfolio_is_proved(risk):
    found = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-4)
    assert found.status is ks.Status.OPTIMAL
    assert found.success
    assert found.message == "optimality gap at most 0.01 % (proved)"
    assert found.fun * (1 - 1e-4) * (1 - 1e-12) <= found.lower_bound <= found.fun
    assert found.gap == pytest.approx((found.fun - found.lower_bound) / found.fun)
    assert found.nodes >= 1
    assert "lower_bound: " in repr(found)
    again = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-4)
    assert (again.lower_bound, again.nodes) == (found.lower_bound, found.nodes)


@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_units_do_not_matter(risk, factor):
    found, scaled = (ks.minimize(ks.Quadratic(2 * size * risk), 5, ks.Simplex(), gap=1e-3) for size in (1.0, factor))
    assert scaled.status is ks.Status.OPTIMAL
    assert scaled.lower_bound == pytest.approx(factor * found.lower_bound, rel=1e-3)


def test_without_a_gap_nothing_is_proved_but_by_enumeration(risk):
    found = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex())
    assert (found.lower_bound, found.gap, found.nodes) == (-np.inf, np.inf, 0)
    few = ks.minimize(ks.Quadratic(2 * risk[:6, :6]), 2, ks.Simplex())
    assert few.status is ks.Status.OPTIMAL
    assert few.gap <= 1e-9


def test_limits_leave_a_bound(risk):
    best = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-6)
    few = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-6, max_nodes=1)
    assert few.status is ks.Status.ITERATION_LIMIT
    assert few.message.startswith("node limit (max_nodes) reached")
    assert 0 < few.lower_bound <= best.fun
    assert few.gap > 1e-6
    late = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-6, max_time=0.2)
    assert late.lower_bound <= best.fun
    assert late.fun >= best.fun * (1 - 1e-9)


@pytest.mark.parametrize(
    ("raised", "status"), [(StopIteration, ks.Status.CALLBACK_STOP), (KeyboardInterrupt, ks.Status.INTERRUPTED)]
)
def test_a_tree_that_is_stopped_has_a_bound(risk, raised, status):
    seen = []

    def callback(intermediate_result):
        if intermediate_result.get("nodes"):  # 0 before the root has a bound
            seen.append(intermediate_result)
            raise raised

    found = ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-6, callback=callback)
    assert found.status is status
    assert len(seen) == 1
    assert {"nodes", "open", "lower_bound", "gap", "elapsed"} <= set(seen[0])
    assert 0 < found.lower_bound < found.fun


def test_progress_of_a_proof_is_logged(risk, caplog):
    with caplog.at_level(logging.INFO, logger="ksparse"):
        ks.minimize(ks.Quadratic(2 * risk), 5, ks.Simplex(), gap=1e-4, verbose=1)
    assert any("branch and bound: 1 node, " in line and "gap" in line for line in caplog.messages)


def test_where_there_is_no_bound_the_message_says_why(rng):
    A, b = rng.standard_normal((12, 30)), rng.standard_normal(12)
    wide = ks.minimize(ks.LeastSquares(A, b), 4, gap=0.01)
    assert wide.success
    assert wide.lower_bound == -np.inf
    assert "no lower bound: some direction of φ has no curvature" in wide.message
    assert "ridge" in wide.message
    boxed = ks.minimize(ks.LeastSquares(A, b), 2, ks.Box(-1.0, 1.0), gap=0.05, max_time=20.0)
    assert 0 <= boxed.lower_bound <= boxed.fun
    assert "φ is not convex" in ks.minimize(ks.Quadratic(-np.eye(30)), 3, ks.Box(-1.0, 1.0), gap=0.1).message


def test_a_ridge_gives_one(rng):
    A, b = rng.standard_normal((12, 30)), rng.standard_normal(12)
    found = ks.minimize(ks.LeastSquares(A, b, ridge=2.0), 3, gap=0.01)
    assert found.status is ks.Status.OPTIMAL
    assert found.gap <= 0.01


def test_single_precision_is_bounded_too(rng):
    A, b = rng.standard_normal((80, 20)).astype(np.float32), rng.standard_normal(80).astype(np.float32)
    found = ks.minimize(ks.LeastSquares(A, b), 4, gap=1e-3, settings=SEARCHED)
    exact = ks.minimize(ks.LeastSquares(A.astype(float), b.astype(float)), 4, gap=1e-6, settings=SEARCHED)
    assert found.status is ks.Status.OPTIMAL
    assert found.lower_bound <= exact.fun


def test_what_arithmetic_cannot_tell_is_not_claimed():
    t = np.linspace(0, 1, 50)
    A = np.vander(t, 14, increasing=True)
    b = np.sin(6 * t) + 0.01 * np.random.default_rng(0).standard_normal(50)
    found = ks.minimize(ks.LeastSquares(A, b), 6, gap=1e-3, max_time=2.0)
    assert found.lower_bound <= found.fun * (1 + 1e-12)


class Risk(ks.Quadratic):
    """A subclass: its capabilities count, not its class."""


def test_a_loss_of_the_users_is_bounded_too(risk):
    own, ours = (ks.minimize(loss(2 * risk), 5, ks.Simplex(), gap=1e-3) for loss in (Risk, ks.Quadratic))
    assert own.status is ks.Status.OPTIMAL
    assert own.lower_bound == pytest.approx(ours.lower_bound)


def test_a_path_is_proved_k_by_k(risk):
    path = ks.k_path(ks.Quadratic(2 * risk), range(3, 7), ks.Simplex(), gap=1e-3)
    assert all(found.status is ks.Status.OPTIMAL for found in path.results)
    assert all(found.gap <= 1e-3 for found in path.results)
    assert (np.diff([found.lower_bound for found in path.results]) <= 1e-3 * path.objective[0]).all()


def test_bad_arguments(risk):
    loss, C = ks.Quadratic(2 * risk), ks.Simplex()
    with pytest.raises(ValueError, match="gap must be"):
        ks.minimize(loss, 3, C, gap=-0.1)
    with pytest.raises(ValueError, match="max_nodes requires gap"):
        ks.minimize(loss, 3, C, max_nodes=10)
    with pytest.raises(ValueError, match="max_nodes must be"):
        ks.minimize(loss, 3, C, gap=0.1, max_nodes=0)
    with pytest.raises(ValueError, match="gap is only supported with method='auto'"):
        ks.minimize(loss, 3, C, method="apdca", gap=0.0)


def test_estimators_prove_too(rng):
    X = rng.standard_normal((100, 30))
    y = X[:, :3] @ np.array([1.0, -2.0, 1.5]) + 0.5 * rng.standard_normal(100)
    model = ks.SparseRegressor(3, gap=1e-3).fit(X, y)
    assert model.result_.status is ks.Status.OPTIMAL
    assert model.result_.gap <= 1e-3
    assert ks.SparsePortfolio(4, gap=1e-3).fit(0.01 * X).result_.gap <= 1e-3


def test_the_command_line_proves_too(tmp_path, capsys, rng):
    X = 100 * np.cumprod(1 + 0.01 * rng.standard_normal((120, 25)), axis=0)
    path = tmp_path / "prices.csv"
    path.write_text(
        "\n".join([",".join(f"a{i}" for i in range(25)), *(",".join(f"{v:.9f}" for v in row) for row in X)])
    )
    assert main(["portfolio", str(path), "-k", "5", "--long-only", "--gap", "1%", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["gap"] <= 0.01
    assert said["status"] == "optimal"
    assert said["lower_bound"] <= said["objective"]
    with pytest.raises(SystemExit):
        main(["portfolio", str(path), "-k", "5", "--gap", "much"])
    assert "argument --gap: must be a number such as" in capsys.readouterr().err


def test_components_are_proved():
    V = pit_props()[0]
    for k in (3, 6, 10):
        best = ks.minimize(ks.PrincipalComponent(V), k, ks.L2Ball())  # by enumeration
        found = ks.minimize(ks.PrincipalComponent(V), k, ks.L2Ball(), gap=1e-3, settings=SEARCHED)
        assert best.status is ks.Status.OPTIMAL
        assert found.status is ks.Status.OPTIMAL
        assert found.lower_bound <= best.fun + 1e-9
        assert found.fun == pytest.approx(best.fun, rel=1e-3)


@pytest.mark.parametrize("seed", sweep(range(6), 2))
def test_no_bound_of_a_component_is_above_the_optimum(seed):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((20, 9)) * 10.0 ** rng.uniform(-1, 1, 9) + rng.standard_normal((20, 1))
    loss, radius, k = ks.PrincipalComponent.from_data(Z), float(rng.uniform(0.5, 3.0)), int(rng.integers(1, 8))
    forced = [int(rng.integers(9))] if seed % 2 else []
    best = ks.minimize(loss, k, ks.L2Ball(radius), forced_in=forced)
    found = ks.minimize(loss, k, ks.L2Ball(radius), forced_in=forced, gap=1e-6, max_nodes=500, settings=SEARCHED)
    assert found.lower_bound <= best.fun + 1e-9 * abs(best.fun)
    first = ks.minimize(loss, k, ks.L2Ball(radius), forced_in=forced, gap=1e-6, max_nodes=1, settings=SEARCHED)
    assert first.lower_bound <= found.lower_bound + 1e-9 * abs(best.fun)


@pytest.mark.parametrize("radius", [0.3, 1.0, 100.0])
def test_a_ball_is_bounded_by_its_multiplier(rng, radius):
    A, b = rng.standard_normal((60, 12)), rng.standard_normal(60)
    best = ks.minimize(ks.LeastSquares(A, b), 4, ks.L2Ball(radius))  # by enumeration
    found = ks.minimize(ks.LeastSquares(A, b), 4, ks.L2Ball(radius), gap=1e-3, settings=SEARCHED)
    assert best.status is ks.Status.OPTIMAL
    assert found.lower_bound <= best.fun * (1 + 1e-9)
    assert found.gap <= 0.01


def test_an_implied_bound_below_0_is_widened_and_not_narrowed():
    loss = ks.MeanVariance.from_returns(np.array([[2, -5, 1], [4, -4, -1], [-4, -3, 1], [-2, -2, 3]]), 30.0)
    C = ks.BudgetBox(
        -0.5400561425231272,
        [-0.5263571950524425, 0.0, -0.36724823603860357],
        [0.4597065837776609, 0.7, 1.3784022834267158],
    )
    found = ks.minimize(loss, 3, C, settings=SEARCHED, gap=0.05)
    assert found.lower_bound <= found.fun


def test_a_matrix_that_is_indefinite_by_its_rounding_is_taken_as_it_is():
    """In single precision BᵀB has eigenvalues of −1e-8: in a large box φ is below its convex approximation."""
    rng = np.random.default_rng(0)
    for big in (1e2, 1e3, 1e4):
        for _ in range(6):
            B = rng.standard_normal((2, 4)).astype(np.float32)
            Q, c = B.T @ B, (B.T @ rng.standard_normal(2)).astype(np.float32)
            Q = (Q + Q.T) / 2
            found = ks.minimize(ks.Quadratic(Q, c), 3, ks.Box(-big, big), gap=1e-6, settings=SEARCHED, max_nodes=100)
            H, c = Q.astype(float), c.astype(float)
            vectors = np.linalg.eigh(H[:3, :3])[1]
            far = np.zeros(4)
            far[:3] = vectors[:, 0] * big / np.abs(vectors[:, 0]).max()
            for x in (far, -far):
                assert found.lower_bound <= 0.5 * x @ H @ x + c @ x + 1e-9 * abs(c @ x)


def clustered(n=40, k=6):
    """Return a portfolio whose tree has some hundred nodes."""
    rng = np.random.default_rng(5)
    returns = rng.standard_normal((200, 8)) @ rng.standard_normal((8, n)) + rng.standard_normal((200, n))
    return ks.Quadratic(np.cov(returns.T)), k, ks.Simplex()


@pytest.mark.slow
def test_the_tree_does_not_depend_on_n_jobs():
    one, two = (ks.minimize(*clustered(), gap=1e-6, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert one.nodes > 200
    assert (one.lower_bound, one.nodes, one.fun) == (two.lower_bound, two.nodes, two.fun)


@pytest.mark.slow
def test_compiled_or_not_the_bounds_are_the_same(monkeypatch):
    compiled = ks.minimize(*clustered(), gap=1e-6)
    monkeypatch.setattr(relaxation, "COMPILED_FROM", 10**9)
    plain = ks.minimize(*clustered(), gap=1e-6)
    assert compiled.status is plain.status is ks.Status.OPTIMAL
    assert compiled.lower_bound == pytest.approx(plain.lower_bound, rel=2e-6)
    assert compiled.fun == plain.fun


@pytest.mark.parametrize("seed", sweep(range(8), 3))
def test_a_forced_variable_with_a_floor_stays_in(seed):
    """Rounding the relaxation drops the variables that do not fit, but never a forced one."""
    rng, n = np.random.default_rng(seed), 7
    F = rng.standard_normal((n + 3, n))
    floor = np.where(np.arange(n) % 2, 0.2, 0.35)
    floor[-1] = 0.5
    problem = ks.Quadratic(F.T @ F / n, rng.standard_normal(n)), 3, ks.Simplex()
    options = {"min_nonzero": floor, "forced_in": [n - 1]}
    best = ks.minimize(*problem, **options)
    found = ks.minimize(*problem, **options, gap=1e-4, settings=SEARCHED)
    assert n - 1 in found.support
    assert found.x[n - 1] >= 0.5 - 1e-12
    assert found.status is best.status is ks.Status.OPTIMAL
    assert found.fun == pytest.approx(best.fun, rel=1.1e-4)
    assert found.lower_bound <= best.fun + 1e-9


def test_a_variable_without_a_ridge_that_need_not_be_there():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 8))
    A[:, -1], ridge = 1.0, np.append(np.full(7, 1.0), 0.0)
    y = (rng.random(40) < 1 / (1 + np.exp(-2 * (A[:, 0] - A[:, 1] + 0.5)))).astype(float)
    assert ks.minimize(ks.Logistic(A, y, ridge=ridge), 3, gap=1e-3, settings=SEARCHED).status is ks.Status.OPTIMAL


def test_a_variable_that_an_equation_fixes_does_not_hold_up_a_proof(rng):
    """The fixed variable has the largest coefficient of a row: the relaxation must not take ever smaller steps."""
    C = ks.Polyhedron([[1.8, 0.14]], [2.3], [[1.0, 0.0]], [1.2], 0.0, 5.6)
    found = ks.minimize(
        ks.LeastSquares([[0.0, -1.24]], [-1.65], ridge=0.015), 2, C, gap=1e-6, settings=SEARCHED, max_time=20.0
    )
    assert found.status is ks.Status.OPTIMAL
    assert found.nodes == 1
    assert found.fun == pytest.approx(0.10235)
    A, b = rng.standard_normal((12, 8)), rng.standard_normal(12)
    G, E = np.r_[40.0, 0.1 * rng.standard_normal(7)], np.eye(8)[:1]
    C, loss = ks.Polyhedron([G], [48.0], E, [1.2], -3.0, 3.0), ks.LeastSquares(A, b, ridge=0.01)
    tree, tried = (ks.minimize(loss, 4, C, gap=1e-6, settings=settings) for settings in (SEARCHED, None))
    assert tree.status is ks.Status.OPTIMAL
    assert tree.lower_bound <= tried.fun * (1 + 1e-12)
    assert tree.fun == pytest.approx(tried.fun)


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def slow(self, function, seconds, when=lambda *args: True):
        """Wrap a function: each call takes the given seconds and is counted."""

        def slowed(*args, **options):
            if when(*args):
                self.now += seconds
                slowed.calls += 1
            return function(*args, **options)

        slowed.calls = 0
        return slowed


def test_a_component_is_not_decomposed_again_when_the_time_is_up(monkeypatch):
    V = np.cov(np.random.default_rng(0).standard_normal((60, 30)).T)
    clock = Clock(monkeypatch)
    slow = clock.slow(np.linalg.eigh, 10.0, lambda M, *_: len(M) == 30)
    monkeypatch.setattr(np.linalg, "eigh", slow)
    found = ks.minimize(ks.PrincipalComponent(V), 5, ks.L2Ball(), gap=1e-6, max_time=15.0, settings=SEARCHED)
    assert found.status is ks.Status.TIME_LIMIT
    assert slow.calls == 2  # the second begins in time
    assert -np.inf < found.lower_bound <= found.fun


def test_thresholds_that_cannot_give_a_better_bound_are_not_decomposed(monkeypatch):
    V = np.cov(np.random.default_rng(0).standard_normal((60, 30)).T)
    slow = Clock(monkeypatch).slow(np.linalg.eigh, 0.0, lambda M, *_: len(M) == 30)
    monkeypatch.setattr(np.linalg, "eigh", slow)
    ks.minimize(ks.PrincipalComponent(V), 5, ks.L2Ball(), gap=1e-6, max_nodes=1, settings=SEARCHED)
    assert slow.calls < 20  # of 40


@pytest.mark.parametrize("slow", ["ksparse.certify.program.positive_inverse", "ksparse.certify.diagonal.scaled_to_psd"])
def test_a_root_ends_at_its_next_step_when_the_time_is_up(monkeypatch, slow):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((80, 40)), rng.standard_normal(80)
    clock, begun = Clock(monkeypatch), []
    module, name = slow.rsplit(".", 1)
    monkeypatch.setattr(slow, clock.slow(getattr(importlib.import_module(module), name), 10.0))
    monkeypatch.setattr("ksparse.certify.quadratic_family.Relaxation", lambda *args: begun.append(args))
    found = ks.minimize(ks.LeastSquares(A, b), 5, gap=1e-6, max_time=5.0, settings=SEARCHED)
    assert found.status is ks.Status.TIME_LIMIT
    assert found.lower_bound == -np.inf
    assert not begun
    listed = ks.near_optimal(ks.LeastSquares(A, b), 5, max_time=5.0, settings=SEARCHED)
    assert not listed.complete
    assert "time" in listed.message


def test_no_eigenvalues_are_computed_that_would_end_long_after_the_time(monkeypatch):
    """H of a long and a short part of each variable is singular: its least eigenvalue is needed."""
    clock, V = Clock(monkeypatch), np.cov(np.random.default_rng(0).standard_normal((60, 10)).T)
    monkeypatch.setattr("ksparse.certify.diagonal.DECOMPOSITION_SECONDS", 20.0 / 20**3)
    slow = clock.slow(np.linalg.eigvalsh, 20.0, lambda M: len(M) == 20)
    monkeypatch.setattr("ksparse.certify.diagonal.np.linalg.eigvalsh", slow)
    loss = ks.Quadratic(np.kron([[1, -1], [-1, 1]], V), np.zeros(20))
    C = ks.Polyhedron(E=np.repeat([1.0, -1.0], 10), f=1.0, lower=0.0, upper=1.0)
    for max_time, calls in ((5.0, 0), (15.0, 1)):
        found = ks.minimize(loss, 4, C, gap=1e-6, max_time=max_time, settings=SEARCHED)
        assert found.status is ks.Status.TIME_LIMIT
        assert slow.calls == calls


def problems_with_a_root():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    yield ks.LeastSquares(A, b), None
    yield ks.Logistic(A, np.sign(b), ridge=1.0), None
    yield ks.PrincipalComponent(A.T @ A), ks.L2Ball()


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    ("raised", "status"), [(StopIteration, ks.Status.CALLBACK_STOP), (KeyboardInterrupt, ks.Status.INTERRUPTED)]
)
def test_a_callback_is_heard_while_the_root_is_bounded(place, raised, status):
    loss, C = list(problems_with_a_root())[place]
    heard = []

    def callback(intermediate_result):
        if intermediate_result.get("nodes") == 0:
            heard.append(intermediate_result)
            raise raised

    found = ks.minimize(loss, 4, C, gap=1e-6, callback=callback, settings=SEARCHED)
    assert len(heard) == 1
    assert found.status is status
    assert np.isfinite(found.fun)
    listed = ks.near_optimal(loss, 4, C, callback=callback, settings=SEARCHED)
    assert len(heard) == 2
    assert not listed.complete


def test_a_reached_gap_and_the_status_agree_however_good_the_fit():
    """For a nearly perfect fit, a proof reaches rounding relative to φ(0), not a share of the value."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        A, x = (
            rng.standard_normal((8, 5)) * 10.0 ** rng.integers(-3, 4, 5),
            np.append(10.0 ** rng.integers(-3, 4, 2), np.zeros(3)),
        )
        b = A @ x + 10.0 ** -rng.integers(5, 16) * rng.standard_normal(8) * np.abs(A @ x).max()
        for settings in (None, SEARCHED):
            found = ks.minimize(ks.LeastSquares(A, b), 2, gap=1e-4, settings=settings)
            assert (found.status is ks.Status.OPTIMAL) == (found.gap <= 1e-4)
            assert found.lower_bound <= found.fun


def test_a_proof_says_in_which_terms_it_reached_the_gap():
    found = ks.minimize(ks.LeastSquares(np.eye(2), [1e4, 1e-4]), 1, gap=1e-6)
    assert found.status is ks.Status.OPTIMAL
    assert found.gap <= 1e-13
    assert found.message == "proved optimal, up to rounding (1e-13 of φ(0))"
    relative = ks.minimize(ks.LeastSquares(np.eye(2), [1e4, 1e3]), 1, gap=1e-6)
    assert relative.gap == (relative.fun - relative.lower_bound) / relative.fun
    assert relative.message == "proved optimal"


def test_a_perfect_fit_in_single_precision_has_the_gap_that_its_status_claims():
    """Rounding x to single precision costs up to 1e-5 of φ(0)."""
    messages = set()
    for seed in range(341, 350, 4):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 6))
        A = rng.standard_normal((int(rng.integers(1, n + 3)), n)).astype(np.float32)
        rng.standard_normal(len(A))
        b = (A @ rng.standard_normal(n)).astype(np.float32)
        found = ks.minimize(ks.LeastSquares(A, b), n, ks.Hyperplane(b=0.0))
        assert found.status is ks.Status.OPTIMAL
        assert found.gap <= 1e-5
        messages.add(found.message)
    assert "proved optimal, up to rounding (1e-05 of φ(0))" in messages
