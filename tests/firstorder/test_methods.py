"""The methods compared with their theorems and with each other."""

import math

import numpy as np
import pytest

import catalogue
import ksparse as ks
from ksparse.firstorder.loop import drive
from ksparse.firstorder.problem import Problem, Stopping


def iterates(method, problem, x0, steps):
    """Return the points x⁽⁰⁾, x⁽¹⁾, …"""
    s = method.init(problem, problem.point(x0))
    found = [s.x.x]
    for _ in range(steps):
        s = method.step(problem, s)
        found.append(s.x.x)
    return np.array(found)


def regression(rng, m=30, n=12):
    A = rng.standard_normal((m, n))
    return A, ks.LeastSquares(A, A @ np.where(np.arange(n) < 3, 2.0, 0.0) + 0.1 * rng.standard_normal(m))


PENALISED = [ks.L1(0.5), ks.MCP(0.5, 1.2), ks.L1MinusL2(0.5), ks.TopK1(0.5, 3), ks.TopK2(0.5, 3)]


# --- equivalences, iterate for iterate --------------------------------------------------------------------------------


def test_pdca_without_g2_is_the_proximal_gradient_method(rng):
    A, loss = regression(rng)
    L = loss.lipschitz()
    slow = [np.zeros(12)]
    for _ in range(60):
        u = slow[-1] - A.T @ (A @ slow[-1] - loss.b) / L
        slow.append(np.sign(u) * np.maximum(np.abs(u) - 0.5 / L, 0))
    np.testing.assert_allclose(
        iterates(ks.PDCA(ks.FixedStep()), Problem(loss, ks.L1(0.5)), np.zeros(12), 60), slow, atol=1e-12
    )


@pytest.mark.parametrize("penalty", PENALISED, ids=repr)
def test_pdca_is_scp(penalty, rng):
    """SCP (Lu 2012) minimises f(x) + ⟨∇f(x), y − x⟩ + (L/2)‖y − x‖² + g1(y) − ⟨s(x), y − x⟩ over y."""
    _, loss = regression(rng)
    problem = Problem(loss, penalty)
    L = problem.lipschitz()
    for x, x_next in zip(
        *[iter(iterates(ks.PDCA(ks.FixedStep()), problem, rng.standard_normal(12), 19))] * 2, strict=True
    ):
        point = problem.point(x)
        pull = problem.grad_f(point) - problem.subgradient_g2(point)
        g1 = (lambda y: 0.0) if problem.smooth else penalty.g1

        def model(y, x=x, pull=pull, g1=g1):
            return pull @ (y - x) + 0.5 * L * np.sum((y - x) ** 2) + g1(y)

        for _ in range(50):
            assert model(x_next) <= model(x_next + rng.standard_normal(12) * 10.0 ** rng.uniform(-4, 0)) + 1e-12


@pytest.mark.parametrize("rule", [ks.FixedStep(), ks.Backtracking()], ids=repr)
def test_apdca_without_g2_is_nmapg_and_pdca_is_gist(rule, rng):
    _, loss = regression(rng)
    problem = Problem(loss, ks.L1(0.5))
    for ours, theirs in ((ks.APDCA(rule), ks.NmAPG(rule)), (ks.PDCA(rule), ks.GIST(rule))):
        np.testing.assert_allclose(
            iterates(ours, problem, np.zeros(12), 80), iterates(theirs, problem, np.zeros(12), 80), atol=1e-12
        )


@pytest.mark.parametrize("penalty", PENALISED, ids=repr)
def test_pdcae_without_extrapolation_is_pdca(penalty, rng):
    _, loss = regression(rng)
    problem = Problem(loss, penalty)
    x0 = rng.standard_normal(12)
    still = iterates(ks.PDCAe(extrapolate=False), problem, x0, 60)
    np.testing.assert_allclose(still, iterates(ks.PDCA(ks.FixedStep()), problem, x0, 60), atol=1e-12)


def test_pdcae_without_g2_is_fista_with_restarts(rng):
    A, loss = regression(rng)
    L, lam = loss.lipschitz(), 0.5
    x_prev = x = np.zeros(12)
    theta_prev = theta = 1.0
    slow = [x]
    for t in range(1, 121):
        y = x + (theta_prev - 1) / theta * (x - x_prev)
        u = y - A.T @ (A @ y - loss.b) / L
        x_prev, x = x, np.sign(u) * np.maximum(np.abs(u) - lam / L, 0)
        theta_prev, theta = theta, (1 + math.sqrt(1 + 4 * theta**2)) / 2
        if t % 40 == 0 or (y - x) @ (x - x_prev) > 0:
            theta_prev = theta = 1.0
        slow.append(x)
    np.testing.assert_allclose(
        iterates(ks.PDCAe(restart=40), Problem(loss, ks.L1(lam)), np.zeros(12), 120), slow, atol=1e-10
    )


def test_fixed_restart_of_pdcae_is_visible_every_200_steps(rng):
    loss = ks.LeastSquares(rng.standard_normal((40, 100)) / 10, rng.standard_normal(40))
    method = ks.PDCAe(adaptive=False)
    problem = Problem(loss, ks.L1(1e-6))
    s = method.init(problem, problem.point(np.zeros(100)))
    betas = []
    for _ in range(1000):
        s = method.step(problem, s)
        betas.append(s.beta)
    np.testing.assert_array_equal(
        np.flatnonzero(np.array(betas[1:]) == 0) + 1,
        np.sort(np.r_[1, np.arange(200, 1000, 200), np.arange(201, 1000, 200)]),
    )


def test_iht_is_hard_thresholding(rng):
    A, loss = regression(rng)
    L, k = loss.lipschitz(), 3
    slow = [np.zeros(12)]
    for _ in range(60):
        u = slow[-1] - A.T @ (A @ slow[-1] - loss.b) / L
        u[np.argsort(-np.abs(u), kind="stable")[k:]] = 0
        slow.append(u)
    problem = Problem(loss, ks.penalties.Cardinality(k, ks.WholeSpace()))
    np.testing.assert_allclose(iterates(ks.IHT(ks.FixedStep()), problem, np.zeros(12), 60), slow, atol=1e-12)


def test_l2_pdca_is_the_papers_closed_form(rng):
    """Algorithm PDCA for eq. (l2penalty): x⁺ = proj_C((L_φ x − ∇φ(x) + s(x))/(L_φ + 2ρ))."""
    V = np.cov(rng.standard_normal((30, 8)).T)
    loss, rho, k = ks.MeanVariance(V, rng.standard_normal(8) / 10, 10.0), 0.3, 3
    L = loss.lipschitz()
    x = np.full(8, 1 / 8)
    slow = [x]
    for _ in range(50):
        s = np.where(np.isin(np.arange(8), np.argsort(-np.abs(x), kind="stable")[:k]), 2 * rho * x, 0)
        u = (L * x - loss.gradient(x) + s) / (L + 2 * rho)
        x = u + (1 - u.sum()) / 8
        slow.append(x)
    problem = Problem(loss, ks.TopK2(rho, k), ks.Hyperplane())
    np.testing.assert_allclose(iterates(ks.PDCA(ks.FixedStep()), problem, slow[0], 50), slow, atol=1e-12)


# --- bounds along the run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALISED, ids=repr)
@pytest.mark.parametrize("method", [ks.PDCA(ks.FixedStep()), ks.PDCA(), ks.GIST()], ids=["pdca fixed", "pdca", "gist"])
def test_monotone_methods_descend(method, penalty, rng):
    _, loss = regression(rng)
    run = drive(method, Problem(loss, penalty), rng.standard_normal(12), Stopping(tol=0.0, max_iter=200))
    F = run.trace.F
    assert (np.diff(F) <= 1e-12 * np.abs(F[1:])).all()


@pytest.mark.parametrize("penalty", PENALISED, ids=repr)
def test_steps_of_pdca_shrink_as_the_theorem_says(penalty, rng):
    """Theorem PDCA_speed: min ‖x⁽ᵗ⁺¹⁾ − x⁽ᵗ⁾‖² ≤ 2(F(x⁽⁰⁾) − F*)/(τσ); with GIST's test, l‖·‖² is on the left."""
    sigma = 0.1
    _, loss = regression(rng)
    problem = Problem(loss, penalty)
    method = ks.PDCA(ks.Backtracking(sigma=sigma))
    s = method.init(problem, problem.point(rng.standard_normal(12)))
    F0, lengths, weighted = problem.F(s.x), [], []
    for _ in range(150):
        before, s = s, method.step(problem, s)
        lengths.append(np.sum((s.x.x - before.x.x) ** 2))
        weighted.append(s.l * lengths[-1])
    drop = F0 - problem.F(s.x)
    for tau in range(1, 150):
        assert min(weighted[: tau + 1]) <= 2 * drop / (tau * sigma) + 1e-12
        assert min(lengths[: tau + 1]) <= 2 * drop / (tau * sigma) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("C", [ks.WholeSpace(), ks.Nonnegative(), ks.L2Ball(0.5)], ids=repr)
def test_apdca_converges_at_the_optimal_rate_on_convex_problems(C, rng):
    """F(x⁽ᵗ⁺¹⁾) − F* ≤ 2L‖x⁽⁰⁾ − x*‖²/(t+1)²."""
    A = rng.standard_normal((20, 40)) @ np.diag(np.logspace(0, -2, 40))
    loss = ks.LeastSquares(A, rng.standard_normal(20))
    problem = Problem(loss, ks.L1(1e-3), C)
    long = drive(
        ks.APDCA(ks.FixedStep()), problem, np.zeros(40), Stopping(tol=0.0, tol_residual=1e-13, max_iter=100_000)
    )
    F_best = problem.F(problem.point(long.x))
    x0 = rng.standard_normal(40)
    start = C.project(x0)
    run = drive(ks.APDCA(ks.FixedStep()), problem, x0, Stopping(tol=0.0, max_iter=400))
    t = np.arange(1, len(run.trace))
    bound = 2 * problem.lipschitz() * np.sum((start - long.x) ** 2) / (t + 1) ** 2
    assert len(t) >= 50
    assert (run.trace.F[1:] - F_best <= bound + 1e-12).all()


@pytest.mark.parametrize("name", catalogue.METHODS)
@pytest.mark.parametrize("penalty", PENALISED, ids=repr)
def test_every_method_reaches_a_stationary_point(name, penalty, rng):
    _, loss = regression(rng)
    problem = Problem(loss, penalty)
    run = drive(catalogue.METHODS[name](), problem, np.zeros(12), Stopping(tol=0.0, tol_residual=1e-9, max_iter=20_000))
    seen = problem.with_undivided_penalty if "GIST" in name or "nmAPG" in name else problem
    assert seen.residual(seen.point(run.x), seen.lipschitz()) <= 1e-6


# --- arrays -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", catalogue.METHODS)
def test_methods_run_on_other_arrays_and_keep_their_kind(name, asarray):
    """The first dozen iterates are those of NumPy float64, to the precision of the dtype."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 8)), rng.standard_normal(20)
    found = {}
    for kind, convert in (("numpy", np.asarray), ("given", asarray)):
        loss = ks.LeastSquares(convert(A), convert(b))
        found[kind] = ks.minimize_penalized(
            loss, ks.MCP(0.5, 2.0), method=catalogue.METHODS[name](), tol=0.0, max_iter=12
        )
    given = asarray(b)
    assert type(found["given"].x) is type(given)
    assert found["given"].x.dtype == given.dtype
    tol = 1e-9 if "64" in str(given.dtype) else 1e-3
    np.testing.assert_allclose(found["given"].trace.F, found["numpy"].trace.F, rtol=tol)


# --- what a method needs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gist", "nmapg"])
def test_whole_prox_on_a_set_is_refused_with_a_way_out(method, rng):
    _, loss = regression(rng)
    reason = f"{method} needs the prox of the whole penalty; TopK2 on a set has none: use apdca"
    with pytest.raises(ks.MissingPieceError, match=reason):
        ks.minimize(loss, 3, ks.Nonnegative(), method=method, rho=1.0)


def test_other_mismatches_say_what_is_missing_and_what_to_use(rng):
    A, loss = regression(rng)
    with pytest.raises(ks.MissingPieceError, match=r"pdcae needs a convex loss; PrincipalComponent .*use apdca"):
        ks.minimize(ks.PrincipalComponent.from_data(A), 3, ks.L2Ball(), method="pdcae", rho=1.0)
    with pytest.raises(
        ks.MissingPieceError, match=r"FixedStep needs a Lipschitz constant .* Poisson has none: use Backtracking"
    ):
        ks.minimize_penalized(ks.Poisson(A, np.ones(30)), ks.L1(1.0), step="fixed")
    with pytest.raises(
        ks.MissingPieceError, match=r"apdca needs the prox of g1 on C; L1\(1\) on Hyperplane.* has none"
    ):
        ks.minimize_penalized(loss, ks.L1(1.0), C=ks.Hyperplane())
    with pytest.raises(ks.MissingPieceError, match="IHT needs the constraint of at most k nonzeros"):
        ks.minimize_penalized(loss, ks.L1(1.0), method="iht")
    with pytest.raises(ks.MissingPieceError, match="IHT needs the projection onto the k-sparse points"):
        ks.minimize(loss, 3, ks.L1Ball(1.0), method="iht")
