"""method="auto": the global optimum where it is known, and the published values on real data."""

import numpy as np
import pytest

import catalogue
import ksparse as ks
from conftest import data_file
from enumeration import enumerated
from ksparse import Status
from ksparse.datasets import pit_props, table5

SEARCHED = ks.SearchSettings(enumerated=0)  # not by trying every support
PIT_PROPS = [1.0000, 1.9540, 2.4753, 2.9375, 3.4062, 3.7710, 3.9962, 4.0686, 4.1386, 4.1726, 4.2083, 4.2182, 4.2186]


@pytest.mark.parametrize("enumerate_small", [True, False])
def test_pit_props_for_every_k(enumerate_small):
    settings = None if enumerate_small else SEARCHED  # the search must find them too
    R, _ = pit_props()
    for k in range(1, 14):
        result = ks.minimize(ks.PrincipalComponent(R), k, ks.L2Ball(), settings=settings)
        assert result.fun == pytest.approx(-PIT_PROPS[k - 1], abs=6e-5)  # the table has four digits
        assert result.support.size <= k
        if enumerate_small:
            assert result.status is Status.OPTIMAL


def test_pit_props_match_the_enumerated_optima_to_six_digits():
    data = np.load(data_file("pitprops_jeffers1967.npz"))
    for k, best in enumerate(data["opt_eig"], start=1):
        assert ks.minimize(ks.PrincipalComponent(data["R"]), k, ks.L2Ball()).fun == pytest.approx(-best, abs=1e-6)


LOSSES = [
    "LeastSquares",
    "LeastSquares weighted",
    "Quadratic",
    "MeanVariance",
    "Logistic",
    "Huber",
    "Poisson",
    "PrincipalComponent",
    "Custom",
]
PAIRS = [
    (loss, C)
    for loss in LOSSES
    for C in catalogue.SETS
    if not (loss == "PrincipalComponent" and C not in ("L2Ball", "Box", "Simplex", "BudgetBox", "L1Ball"))
]


@pytest.mark.slow
def test_the_search_finds_the_global_optimum_of_small_problems():
    """200 random problems over all compatible pairs, without enumeration of supports."""
    hits = total = 0
    misses = []
    for case in range(200):
        loss_name, set_name = PAIRS[case % len(PAIRS)]
        rng = np.random.default_rng(case)
        n, k = catalogue.N, int(rng.integers(1, 4))
        loss = {**catalogue.LOSSES, **catalogue.FREE_LOSSES}[loss_name](rng, lambda A: A)
        C = catalogue.SETS[set_name](n)
        if C.why_no_sparse_member(n, k) is not None:
            continue
        best = enumerated(loss, C, n, k)
        if best == np.inf:
            continue
        result = ks.minimize(loss, k, C, settings=SEARCHED)
        total += 1
        assert result.support.size <= k
        assert C.violation(result.x) <= 1e-9
        assert result.fun == loss.value(result.x)
        hit = result.fun <= best + 1e-6 * max(1.0, abs(best))
        hits += hit
        if not hit:
            misses.append((case, loss_name, set_name, k, result.fun, best))
    assert total >= 180
    assert hits >= 0.95 * total, misses


@pytest.mark.parametrize(
    "set_name", ["WholeSpace", "Nonnegative some", "Simplex", "Hyperplane", "Box", "L2Ball", "BudgetBox"]
)
def test_larger_problems_against_enumeration(set_name):
    hits = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((16, 12)) @ (np.eye(12) + 0.7)
        loss = ks.LeastSquares(A, rng.standard_normal(16))
        C = catalogue.SETS[set_name](12)
        hits += ks.minimize(loss, 4, C, settings=SEARCHED).fun <= enumerated(loss, C, 12, 4) + 1e-9
    assert hits == 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("set_name", ["WholeSpace", "Nonnegative", "Hyperplane", "L2Ball"])
def test_never_worse_than_the_papers_methods(set_name, seed):
    rng = np.random.default_rng(seed)
    loss = ks.LeastSquares(rng.standard_normal((30, 60)), rng.standard_normal(30))
    C = catalogue.SETS[set_name](60)
    auto = ks.minimize(loss, 6, C).fun
    methods = ["pdca", "apdca", "iht"] + (["gist", "nmapg", "l1pdca"] if set_name == "WholeSpace" else [])
    for method in methods:
        assert auto <= ks.minimize(loss, 6, C, method=method).fun + 1e-12


@pytest.mark.parametrize(("i", "most"), [(1, 0.1611), (2, 0.1766), (3, 0.1646), (5, 0.1660)])
def test_table_5(i, most):
    data = table5(i, seed=0)
    result = ks.minimize(ks.LeastSquares(data.A, data.b), data.k, ks.Nonnegative(data.nonnegative))
    x = result.x
    assert result.fun <= most
    assert 0.5 * np.sum((data.A @ x - data.b) ** 2) == pytest.approx(result.fun)
    assert np.count_nonzero(x) <= data.k
    assert (x[data.nonnegative] >= 0).all()
    assert result.status is Status.SWAP_OPTIMAL


def test_colon():
    X = np.load(data_file("colon_alon1999.npz"))["X"]
    result = ks.minimize(ks.PrincipalComponent.from_data(X), 100, ks.L2Ball())
    assert result.fun <= -84.46
    assert result.support.size <= 100
    x = result.x
    assert -x @ np.corrcoef(X.T) @ x == pytest.approx(result.fun)
    assert np.linalg.norm(x) <= 1 + 1e-12


def test_tokyo():
    returns = np.load(data_file("tokyo_daily_returns_2148x1338.npz"))["returns"].astype(float)
    loss = ks.MeanVariance(np.cov(returns.T), returns.mean(axis=0), 10)
    assert ks.minimize(loss, 10, ks.Hyperplane()).fun <= -4.56e-4
    result = ks.minimize(loss, 10, ks.Hyperplane(), effort=3)
    assert result.fun <= -4.739e-4
    assert abs(result.x.sum() - 1) <= 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("K", [5, 10])
def test_published_cardinality_constrained_portfolios(K):
    data = np.load(data_file("orlib_port1_n31.npz"))
    mu, V = data["mu"], data["corr"] * np.outer(data["sd"], data["sd"])
    for i in np.linspace(0, 499, 50).astype(int):
        target = data["cc_rho"][i]
        C = ks.Polyhedron(None, None, np.vstack([np.ones(31), mu]), [1.0, target], lower=0.0)
        x = ks.minimize(ks.Quadratic(2 * V), K, C, min_nonzero=0.01).x
        assert x @ V @ x <= data[f"cc_K{K}_var"][i] * 1.0005
        assert abs(x.sum() - 1) <= 1e-9
        assert abs(mu @ x - target) <= 1e-9
        assert np.count_nonzero(x) <= K
        assert x[x != 0].min() >= 0.01 - 1e-12


@pytest.mark.parametrize("k", [1, 2, 3])
def test_components_on_boxes_away_from_0(k, rng):
    Z = rng.standard_normal((9, 5))
    V = Z.T @ Z / 9
    result = ks.minimize(ks.PrincipalComponent(V), k, ks.Box(-3, 0))
    corners = -3.0 * np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    assert result.fun <= min(-x @ V @ x for x in corners if np.count_nonzero(x) <= k) + 1e-9
    assert ks.minimize(ks.PrincipalComponent(V), k, ks.Box(-np.inf, 0)).status is Status.UNBOUNDED


def test_indefinite_quadratics_on_boxes_and_budgets(rng):
    """Compare with a fine grid in three variables."""
    side = np.linspace(-1, 1, 41)
    grid = np.array(np.meshgrid(side, side, side)).reshape(3, -1).T
    for _ in range(20):
        Q = rng.standard_normal((3, 3))
        loss = ks.Quadratic(Q + Q.T, rng.standard_normal(3))
        values = 0.5 * np.einsum("ij,jk,ik->i", grid, Q + Q.T, grid) + grid @ loss.c
        assert ks.minimize(loss, 3, ks.Box(-1, 1)).fun <= values.min() + 1e-12
        on_budget = np.abs(grid.sum(axis=1) - 1.0) < 1e-9
        assert ks.minimize(loss, 3, ks.BudgetBox(1.0, -1.0, 1.0)).fun <= values[on_budget].min() + 1e-12


@pytest.mark.parametrize("enumerated", [0, 2000])
def test_starts_that_use_the_curvature(enumerated):
    settings = ks.SearchSettings(enumerated=33 * enumerated)
    # along every vector of even signs and sizes
    flat = ks.PrincipalComponent([[8.0, 0.0, -8.0], [0.0, 0.0, 0.0], [-8.0, 0.0, 8.0]])
    assert ks.minimize(flat, 3, ks.L1Ball(100.0), settings=settings).fun == pytest.approx(-80000.0)
    low, high = np.zeros(2), np.array([1.0, 1.4])
    C = ks.CustomSet(lambda u: np.clip(u, low, high), lambda x: np.abs(x - np.clip(x, low, high)).max(), n=2)
    beyond = ks.Quadratic(np.diag([0.0, -1.0]), [1.0, 0.48])  # 0 is a valley, the other end a deeper one
    assert ks.minimize(beyond, 2, C, settings=settings).fun == pytest.approx(0.48 * 1.4 - 0.98)


def test_a_guess_rules_no_exchange_out():
    # where it is linear its model is flat
    loss = ks.Huber([[-0.3148, 0.3067, 0.6296, -1.76, -2.0474]], [0.4837], delta=0.7)
    C = ks.BudgetBox(1.4548, [-1.0796, 0.2, -0.7766, -1.315, -0.1096], [0.0705, 0.7, 0.0056, 1.0592, 0.762])
    begin = np.array([0.9886, -0.2355, 1.1916, 1.2876, -1.3383])
    off = ks.minimize(loss, 3, C, x0=begin, settings=SEARCHED)
    assert off.fun == pytest.approx(ks.minimize(loss, 3, C).fun)


def test_a_minimum_further_out_than_one_near_0():
    c = np.array([0.64, -0.378])
    loss = ks.Custom(lambda x: float(((x**2 - 1) ** 2).sum() / 4 + c @ x), lambda x: x**3 - x + c, n=2, convex=False)
    found = ks.minimize(loss, 2, ks.Box([-1.4, -1.0], [0.8, -0.5]))
    assert found.x[1] == pytest.approx(-0.639, abs=1e-2)  # at -0.5 it is a minimum too


def test_a_component_keeps_a_forced_variable_that_explains_nothing():
    loss = ks.PrincipalComponent.from_factor([[0.845, 0.0, -0.411]])
    found = ks.minimize(loss, 1, ks.L2Ball(), forced_in=[1], forced_out=[2], settings=SEARCHED)
    assert set(found.support) <= {1}


def test_a_component_is_not_left_at_0_where_it_explains_nothing():
    ball = ks.CustomSet(lambda u: u / max(1.0, np.linalg.norm(u)), lambda x: max(0.0, np.linalg.norm(x) - 1.0), n=2)
    found = ks.minimize(ks.PrincipalComponent(np.diag([0.0, 1.0])), 1, ball, settings=SEARCHED)
    assert found.fun == pytest.approx(-1.0)


@pytest.mark.parametrize("kind", ["squares", "signs", "logistic", "cox"])
def test_a_fit_without_loss_is_proved_optimal_at_once(kind, rng):
    """No loss here has negative values, so nothing is left to search for."""
    A = rng.standard_normal((60, 30))
    order = np.argsort(np.argsort(A[:, 0])) + 1.0
    losses = {
        "squares": lambda: ks.LeastSquares(A, A[:, :3] @ [1.0, 2.0, 3.0]),
        "signs": lambda: ks.LeastSquares(A, A[:, :3] @ [1.0, 2.0, 3.0]),
        "logistic": lambda: ks.Logistic(A, np.sign(A[:, 0])),
        "cox": lambda: ks.Cox(A, order, np.ones(60)),
    }
    C = ks.Nonnegative() if kind == "signs" else None
    result = ks.minimize(losses[kind](), 6, C)
    assert result.status is ks.Status.OPTIMAL
    assert result.success
    assert result.lower_bound == 0.0
    assert result.gap <= 1e-8
    assert 0.0 <= result.fun <= 1e-10
    assert len(result.outcomes) <= 2
    assert result.support.size <= 6


@pytest.mark.parametrize("kind", ["gamma", "poisson", "one weight"])
def test_a_large_value_at_0_is_no_scale_for_the_least_one(kind, rng):
    """The fits below are far from perfect, though φ(0) is 1e14 times what they leave."""
    A = rng.standard_normal((100, 30))
    A[:, 0] = 1.0
    rate = np.exp(0.3 * A[:, 3] - 0.3 * A[:, 5] + 0.2 * A[:, 7])
    if kind == "gamma":
        loss = ks.Gamma(A, 2e13 * rate * rng.gamma(20.0, 0.05, 100))
    elif kind == "poisson":
        loss = ks.Poisson(A, np.round(1e8 * rate * rng.gamma(20.0, 0.05, 100)))
    else:
        weight = np.ones(100)
        weight[0] = 1e15
        loss = ks.Huber(A, A[:, 3] - A[:, 5] + 0.5 * rng.standard_normal(100), 1.0, sample_weight=weight)
    result = ks.minimize(loss, 4)
    assert result.status is not ks.Status.OPTIMAL
    other = ks.minimize(loss, 4, forced_in=[0, 3, 5])
    assert 1.0 < result.fun - loss.least <= (other.fun - loss.least) * (1 + 1e-5)
