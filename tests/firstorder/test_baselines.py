"""ℓ1-DCA, MIP-DCA and ℓ1-PDCA as defined in the paper."""

import builtins

import numpy as np
import pytest

import ksparse as ks
from ksparse.datasets import pit_props, table5
from ksparse.firstorder.loop import drive
from ksparse.firstorder.methods.conic import ConicSubproblem, DualLasso
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.penalties import BigM

clarabel = pytest.importorskip("clarabel", reason="Clarabel is not installed")
SETS = [
    ks.WholeSpace(),
    ks.Hyperplane(),
    ks.Nonnegative(),
    ks.Box(-0.5, 0.5),
    ks.Simplex(),
    ks.BudgetBox(1.0, 0.0, 0.6),
    ks.L2Ball(0.7),
    ks.L1Ball(0.9),
]


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize("kind", ["factor", "matrix", "weighted", "sparse", "wide"])
def test_a_subproblem_is_solved_to_optimality(C, kind, rng):
    """One step of ℓ1-DCA: no feasible point may have a smaller γ + ρ‖x‖₁ − ⟨s, x⟩."""
    import scipy.sparse

    A, b = rng.standard_normal((12, 6)), rng.standard_normal(12)
    loss = {
        "factor": lambda: ks.LeastSquares(A, b),
        "weighted": lambda: ks.LeastSquares(A, b, sample_weight=rng.uniform(0, 2, 12)),
        "matrix": lambda: ks.Quadratic(A.T @ A, -A.T @ b),
        "sparse": lambda: ks.LeastSquares(scipy.sparse.csr_array(A), b),
        "wide": lambda: ks.LeastSquares(A[:4], b[:4]),
    }[kind]()
    problem = Problem(loss, ks.TopK1(0.3, 2), C)
    method = ks.L1DCA()
    s = method.init(problem, problem.project_to_domain(rng.standard_normal(6)))
    pull = problem.subgradient_g2(s.x)
    x = method.step(problem, s).x.x

    def model(y):
        return loss.value(y) + 0.3 * np.abs(y).sum() - pull @ y

    assert C.violation(x) <= 1e-6
    for _ in range(100):
        assert model(x) <= model(C.project(x + rng.standard_normal(6) * 10.0 ** rng.uniform(-3, 0))) + 1e-6


@pytest.mark.parametrize("C", [ks.WholeSpace(), ks.Nonnegative(), ks.Nonnegative([0, 3, 7])], ids=repr)
@pytest.mark.parametrize("weight", [None, "weighted"])
def test_the_dual_and_the_conic_form_agree(C, weight, rng):
    """With few rows, the subproblem min γ + qᵀx + Σ wⱼ|xⱼ| in m variables agrees with that in all variables."""
    A, b = rng.standard_normal((7, 15)), rng.standard_normal(7)
    loss = ks.LeastSquares(A, b, sample_weight=None if weight is None else rng.uniform(0, 2, 7))
    lasso, conic = DualLasso.for_pieces(loss, C, 15), ConicSubproblem("l1dca", loss, C, 15)
    conic.absolute_values()
    for w in (0.01, 0.5, 3.0):  # from nearly interpolating to all 0
        q = w * rng.uniform(-0.9, 0.9, 15)
        x, (y, _) = lasso.solve(q, np.full(15, w)), conic.solve(q, np.full(15, w))
        model = lambda z, q=q, w=w: loss.value(z) + q @ z + w * np.abs(z).sum()  # noqa: E731
        assert model(x) == pytest.approx(model(np.maximum(y, C.as_linear(15).lower)), abs=1e-6)
        np.testing.assert_allclose(x, y, atol=1e-3)
        assert C.violation(x) == 0


def test_the_dual_form_is_used_where_it_fits_and_nowhere_else(rng):
    wide, tall, b = rng.standard_normal((7, 15)), rng.standard_normal((15, 7)), rng.standard_normal(15)
    assert DualLasso.for_pieces(ks.LeastSquares(wide, b[:7]), ks.Nonnegative(), 15) is not None
    assert DualLasso.for_pieces(ks.LeastSquares(tall, b), ks.Nonnegative(), 7) is None
    for C in (
        ks.Box(-1, 1),
        ks.Hyperplane(),
        ks.L2Ball(),
        ks.L1Ball(1.0),
        ks.Box(0.0, np.r_[np.full(14, np.inf), 1.0]),
    ):
        assert DualLasso.for_pieces(ks.LeastSquares(wide, b[:7]), C, 15) is None


def test_an_answer_without_a_small_duality_gap_is_refused(rng):
    lasso = DualLasso.for_pieces(
        ks.LeastSquares(rng.standard_normal((7, 15)), rng.standard_normal(7)), ks.WholeSpace(), 15
    )
    assert lasso.solve(np.zeros(15), np.full(15, 0.1)) is not None
    # unbounded below: more columns than rows, and |q| > w
    assert lasso.solve(np.full(15, 5.0), np.full(15, 0.1)) is None
    lasso.A = lasso.A + 1.0  # now the solver holds other data than the check
    assert lasso.solve(np.zeros(15), np.full(15, 0.1)) is None


@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_dca_descends(method, rho, rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 10)), rng.standard_normal(20))
    penalty = ks.TopK1(rho, 3) if method == "l1dca" else BigM(rho, 3)
    algorithm = ks.L1DCA() if method == "l1dca" else ks.MIPDCA()
    run = drive(algorithm, Problem(loss, penalty, ks.Nonnegative()), np.full(10, 0.1), Stopping(tol=1e-7, max_iter=50))
    assert (np.diff(run.trace.F[1:]) <= 1e-6).all()


@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
@pytest.mark.parametrize("C", SETS, ids=repr)
def test_answers_are_k_sparse_and_feasible(method, C, rng):
    loss = ks.LeastSquares(rng.standard_normal((20, 8)), rng.standard_normal(20))
    result = ks.minimize(loss, 3, C, method=method)
    assert result.support.size <= 3
    assert result.maxcv <= 1e-9
    assert result.fun >= ks.minimize(loss, 3, C).fun - 1e-9
    assert len(result.outcomes) == 9


@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
@pytest.mark.parametrize("shape", [(12, 30), (40, 12)], ids=["dual", "one block"])
@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e6])
def test_answers_do_not_depend_on_the_units_of_the_target(method, shape, scale, rng):
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    weights = np.array([0.01, 0.1, 1.0, 10.0])
    plain = ks.minimize(ks.LeastSquares(A, b), 4, ks.Nonnegative([0, 1]), method=method, rho=list(weights))
    scaled_weights = weights * (scale if method == "l1dca" else scale**2)  # of ‖x‖₁, of an indicator without units
    big = ks.MIPDCA(M=100.0 * scale) if method == "mipdca" else method
    scaled = ks.minimize(
        ks.LeastSquares(A, scale * b),
        4,
        ks.Nonnegative([0, 1]),
        method=big,
        rho=list(scaled_weights),
        x0=np.full(shape[1], scale / shape[1]),
    )
    assert scaled.fun == pytest.approx(scale**2 * plain.fun, rel=1e-5)
    np.testing.assert_array_equal(scaled.support, plain.support)


def test_an_answer_of_zero_is_zero_and_not_the_support_of_its_noise():
    data = table5(1, seed=0)
    result = ks.minimize(
        ks.LeastSquares(data.A, data.b), data.k, ks.Nonnegative(data.nonnegative), method="mipdca", rho=1000.0
    )
    assert result.support.size == 0
    assert result.fun == pytest.approx(0.5)


def test_indicators_respect_the_big_m(rng):
    loss = ks.LeastSquares(np.eye(5), 10 * np.ones(5))
    small = drive(ks.MIPDCA(M=2.0), Problem(loss, BigM(1.0, 2)), np.full(5, 0.2), Stopping())
    assert np.abs(small.x).max() <= 2.0 + 1e-6
    assert np.abs(small.x).sum() <= 2.0 * 2 + 1e-5  # |x| ≤ Mu, 1ᵀu ≤ k


def test_pit_props_are_near_the_optimum_as_in_the_papers_box_plot():
    R, _ = pit_props()
    for method in ("l1dca", "mipdca", "pdca", "apdca"):
        values = [
            ks.minimize(
                ks.PrincipalComponent(R),
                5,
                ks.L2Ball(),
                method=method,
                rho=1.0,
                x0=np.random.default_rng(s).standard_normal(13),
            ).fun
            for s in range(5)
        ]
        assert min(values) <= -2.8
        assert min(values) >= -3.4063


def test_concave_and_indefinite_losses(rng):
    Q = rng.standard_normal((6, 6))
    for loss in (ks.PrincipalComponent(Q @ Q.T), ks.Quadratic(Q + Q.T)):
        for method in ("l1dca", "mipdca"):
            result = ks.minimize(loss, 2, ks.L2Ball(), method=method, rho=1.0)
            assert result.support.size <= 2
            assert result.maxcv <= 1e-9


def test_l1_pdca_is_soft_thresholding_and_exact_for_large_weights(rng):
    A = rng.standard_normal((60, 15))
    loss = ks.LeastSquares(A, A[:, :3].sum(1) * 4 + rng.standard_normal(60))
    L, rho, k = loss.lipschitz(), 5.0, 3
    x, problem = np.zeros(15), Problem(loss, ks.TopK1(rho, k))
    method = ks.L1PDCA(ks.FixedStep())
    s = method.init(problem, problem.point(x))
    for _ in range(40):
        pull = rho * np.where(np.isin(np.arange(15), np.argsort(-np.abs(x), kind="stable")[:k]), np.sign(x), 0)
        u = x - (loss.gradient(x) - pull) / L
        x = np.sign(u) * np.maximum(np.abs(u) - rho / L, 0)
        s = method.step(problem, s)
        np.testing.assert_allclose(s.x.x, x, atol=1e-10)
    result = ks.minimize(loss, 3, method="l1pdca")
    np.testing.assert_array_equal(result.support, [0, 1, 2])
    assert any(row["k_sparse"] for row in result.outcomes)


def test_n_of_two_thousand_fits():
    data = table5(1, seed=0)
    A = np.tile(data.A, (1, 4))[:, :2000]
    result = ks.minimize(ks.LeastSquares(A, data.b), 20, method="l1dca", rho=0.1, max_iter=2)
    assert result.support.size <= 20


def test_what_the_baselines_cannot_do_is_said(rng, monkeypatch):
    A, b = rng.standard_normal((20, 8)), rng.standard_normal(20)
    with pytest.raises(ks.MissingPieceError, match="l1dca needs a quadratic loss; Logistic is not: use apdca"):
        ks.minimize(ks.Logistic(A, np.sign(b)), 3, method="l1dca", rho=1.0)
    with pytest.raises(ks.MissingPieceError, match="mipdca needs a polyhedron, ℓ1 ball or ℓ2 ball"):
        ks.minimize(ks.LeastSquares(A, b), 3, ks.CustomSet(lambda u: u, lambda x: 0.0), method="mipdca", rho=1.0)
    with pytest.raises(ks.MissingPieceError, match="l1dca needs the penalty TopK1"):
        ks.minimize_penalized(ks.LeastSquares(A, b), ks.L1(1.0), method="l1dca")
    with pytest.raises(ValueError, match="M must be > 0"):
        ks.MIPDCA(M=0.0)
    real_import = builtins.__import__

    def without_clarabel(name, *args, **kwargs):
        if name == "clarabel":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_clarabel)
    with pytest.raises(ImportError, match=r"l1dca needs the solver Clarabel: pip install 'ksparse\[baselines\]'"):
        ks.minimize(ks.LeastSquares(A, b), 3, method="l1dca", rho=1.0)


@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
def test_rows_that_are_too_far_away_to_matter_do_no_harm(method, rng, capfd):
    """Clarabel drops such rows and then accepts no new cost; PIQP prints a message about them."""
    n, size = 7, 1e100
    Z = rng.standard_normal((14, n))
    C = ks.Polyhedron(rng.standard_normal((1, n)), np.array([size]), lower=np.full(n, -size), upper=size)
    found = ks.minimize(ks.Quadratic(Z.T @ Z / size), n, C, method=method, rho=[0.01, 1.0], max_iter=300)
    assert C.contains(found.x)
    tiny = ks.LeastSquares(rng.standard_normal((5, 6)) / size, rng.standard_normal(5) / size)
    assert ks.minimize(tiny, 3, ks.Nonnegative([0, 1]), method=method, rho=[0.01, 1.0], max_iter=300).fun <= tiny.value(
        np.zeros(6)
    )
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("method", ["l1dca", "mipdca"])
def test_a_subproblem_ends_with_the_time(method, rng, monkeypatch):
    loss = ks.LeastSquares(rng.standard_normal((30, 20)), rng.standard_normal(30))
    left = iter([60.0, *[1e-9] * 9])
    monkeypatch.setattr("ksparse.firstorder.methods.conic.time_left", lambda: next(left))
    found = ks.minimize(loss, 3, ks.Box(-1.0, 1.0), method=method, rho=1.0)
    assert found.status is ks.Status.TIME_LIMIT
    assert found.nit == 1
    assert found.support.size <= 3


def test_the_dual_form_leaves_out_and_takes_back_rows(rng):
    A, b = rng.standard_normal((7, 15)), rng.standard_normal(7)
    loss = ks.LeastSquares(A, b)
    lasso = DualLasso.for_pieces(loss, ks.WholeSpace(), 15)
    far = np.where(np.arange(15) % 3 == 0, 1e40, 0.1)
    for w in (np.full(15, 0.1), far, np.full(15, 1e40), far, np.full(15, 0.1)):
        fresh = DualLasso.for_pieces(loss, ks.WholeSpace(), 15)
        x = lasso.solve(np.zeros(15), w)
        np.testing.assert_allclose(x, fresh.solve(np.zeros(15), w), atol=1e-5)
        assert not x[w > 1].any()
        assert x.any() == (w < 1).any()
