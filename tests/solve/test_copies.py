"""Pickled, copied, and used from two threads at once: every public object gives the same answers."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import ksparse as ks
from catalogue import FREE_LOSSES, LOSSES, METHODS, PENALTIES, SETS, TABLE_LOSSES, N
from ksparse.estimators import (
    SparseClassifier,
    SparseClassifierCV,
    SparsePCA,
    SparsePortfolio,
    SparseRegressor,
    SparseRegressorCV,
)

TRIPS = {"pickle": lambda piece: pickle.loads(pickle.dumps(piece)), "deepcopy": copy.deepcopy}


@pytest.fixture(params=TRIPS)
def trip(request):
    return TRIPS[request.param]


def cosh(x):
    return float(np.sum(np.cosh(x - 1.0)))


def sinh(x):
    return np.sinh(x - 1.0)


def clipped(u):
    return np.clip(u, 0.0, 1.0)


def outside(x):
    return float(np.abs(x - np.clip(x, 0.0, 1.0)).max())


def same(first, second):
    """Check that two results of one problem are identical."""
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.support, second.support)
    assert (first.fun, first.status, first.k, first.nit) == (second.fun, second.status, second.k, second.nit)


# --- losses ---


def losses():
    made = {name: make for group in (LOSSES, TABLE_LOSSES) for name, make in group.items()}
    for name, make in made.items():
        yield name, lambda make=make: make(np.random.default_rng(1), lambda A: A)
        yield f"{name}, sparse", lambda make=make: make(np.random.default_rng(1), scipy.sparse.csr_array)
    yield "Custom", lambda: ks.Custom(cosh, sinh, n=N, convex=True)
    yield "from_factor", lambda: ks.PrincipalComponent.from_factor(np.random.default_rng(1).standard_normal((4, N)))


ALL_LOSSES = dict(losses())
assert set(FREE_LOSSES) == {"Custom"}  # the one there is made of functions that no pickle can hold


def solved(loss):
    return ks.minimize(loss, 2, ks.L2Ball())


@pytest.mark.parametrize("name", ALL_LOSSES)
def test_losses(name, trip):
    loss = ALL_LOSSES[name]()
    x = np.linspace(-1, 1, N)
    fresh = trip(loss)
    wanted = solved(loss)
    used = trip(loss)  # with what it has worked out by now
    for other in (fresh, used):
        assert other.value(x) == loss.value(x)
        np.testing.assert_array_equal(other.gradient(x), loss.gradient(x))
        assert other.lipschitz() == loss.lipschitz()
        same(solved(other), wanted)
    support = np.array([0, 3])
    assert trip(loss.restrict(support)).value(x[support]) == loss.restrict(support).value(x[support])


@pytest.mark.needs("torch")
def test_a_loss_by_automatic_differentiation(trip):
    loss = ks.autodiff(square, n=4)
    same(solved(trip(loss)), solved(loss))


def square(x):
    return ((x - 1.0) ** 2).sum()


# --- sets, penalties, methods, rules ---

ALL_SETS = {name: make for name, make in SETS.items() if name != "CustomSet"} | {
    "CustomSet": lambda n: ks.CustomSet(clipped, outside, n=n)
}


@pytest.mark.parametrize("name", ALL_SETS)
def test_sets(name, trip):
    C = ALL_SETS[name](N)
    loss = LOSSES["LeastSquares"](np.random.default_rng(1), lambda A: A)
    u = np.linspace(-2, 3, N)
    fresh = trip(C)
    wanted = ks.minimize(loss, 4, C)
    for other in (fresh, trip(C)):
        # a polyhedron begins where it last ended
        np.testing.assert_allclose(other.project(u), C.project(u), rtol=1e-13, atol=1e-13)
        assert other.violation(u) == C.violation(u)
        assert str(other) == str(C) or name == "CustomSet"
        found = ks.minimize(loss, 4, other)
        assert (found.status, list(found.support)) == (wanted.status, list(wanted.support))
        np.testing.assert_allclose(found.x, wanted.x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties(name, trip):
    penalty = PENALTIES[name](N)
    loss = LOSSES["LeastSquares"](np.random.default_rng(1), lambda A: A)
    same(ks.minimize_penalized(loss, trip(penalty)), ks.minimize_penalized(loss, penalty))


@pytest.mark.parametrize("name", [*METHODS, "IHT"])
def test_methods_and_their_rules(name, trip):
    method = ks.IHT() if name == "IHT" else METHODS[name]()
    loss = LOSSES["LeastSquares"](np.random.default_rng(1), lambda A: A)
    assert trip(method) == method
    same(ks.minimize(loss, 2, method=trip(method), rho=[0.1, 1.0]), ks.minimize(loss, 2, method=method, rho=[0.1, 1.0]))


@pytest.mark.parametrize(
    "rule", [ks.FixedStep(), ks.FixedStep(30.0), ks.Backtracking(), ks.Backtracking(eta=3.0)], ids=str
)
def test_step_rules(rule, trip):
    assert trip(rule) == rule


# --- answers ---


def test_results_and_paths(trip):
    loss = LOSSES["LeastSquares"](np.random.default_rng(1), lambda A: A)
    for result in (ks.minimize(loss, 2), ks.minimize(loss, 2, method="apdca"), ks.minimize_penalized(loss, ks.L1(0.1))):
        other = trip(result)
        same(other, result)
        assert repr(other) == repr(result)
        assert other.status is result.status
        np.testing.assert_array_equal(other.trace.F, result.trace.F)
        assert len(other.outcomes) == len(result.outcomes)
    path = ks.k_path(loss, range(1, 5))
    other = trip(path)
    np.testing.assert_array_equal(other.objective, path.objective)
    assert [list(entered) for entered in other.entered] == [list(entered) for entered in path.entered]
    for first, second in zip(other.results, path.results, strict=True):
        same(first, second)


def test_statuses_and_errors(trip):
    assert all(trip(status) is status for status in ks.Status)
    for error in (ks.InfeasibleError("no point"), ks.MissingPieceError("no piece")):
        other = trip(error)
        assert type(other) is type(error)
        assert str(other) == str(error)


# --- estimators ---

ESTIMATORS = {
    "SparseRegressor": SparseRegressor(3, C=ks.Box(-5.0, 5.0), forced_in=[1]),
    "SparseRegressor huber": SparseRegressor(3, loss="huber", positive=True),
    "SparseRegressorCV": SparseRegressorCV([1, 3], cv=3),
    "SparseClassifier": SparseClassifier(2),
    "SparseClassifierCV": SparseClassifierCV([1, 2], criterion="bic"),
    "SparsePCA": SparsePCA(2, 3, deflation="hotelling"),
    "SparsePortfolio": SparsePortfolio(3, max_weight=0.5),
}


def data(name, rows=60):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((rows, 6))
    y = X @ [1.0, 0.0, -2.0, 0.0, 0.5, 0.0] + rng.standard_normal(rows)
    return X, {"SparseClassifier": y > 0, "SparseClassifierCV": y > 0, "SparsePCA": None, "SparsePortfolio": None}.get(
        name, y
    )


def used(name, model, X):
    return (model.transform if name == "SparsePCA" else model.predict)(X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name, trip):
    X, y = data(name)
    fitted = clone(ESTIMATORS[name]).fit(X, y)
    other = trip(fitted)
    np.testing.assert_array_equal(used(name, other, X), used(name, fitted, X))
    assert str(other) == str(fitted)
    results = [model.result_ if isinstance(model.result_, list) else [model.result_] for model in (fitted, other)]
    for first, second in zip(*results, strict=True):
        same(first, second)
    raw = trip(ESTIMATORS[name])
    np.testing.assert_array_equal(used(name, raw.fit(X, y), X), used(name, fitted, X))
    assert not hasattr(ESTIMATORS[name], "result_")


def test_the_skfolio_face(trip):
    pytest.importorskip("skfolio", reason="skfolio is not installed")
    from ksparse.skfolio import SparseMeanRisk

    X = 0.01 * np.random.default_rng(0).standard_normal((80, 6))
    model = SparseMeanRisk(3).fit(X)
    np.testing.assert_array_equal(trip(model).weights_, model.weights_)
    np.testing.assert_array_equal(trip(SparseMeanRisk(3)).fit(X).weights_, model.weights_)


# --- two at once ---


def problems():
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((60, 30)), rng.standard_normal(60)
    Z = rng.standard_normal((40, 50))
    yield "least squares", lambda: ks.minimize(ks.LeastSquares(A, b), 8)
    yield "nonnegative", lambda: ks.minimize(ks.LeastSquares(A, b), 8, ks.Nonnegative())
    yield "portfolio", lambda: ks.minimize(ks.MeanVariance(Z.T @ Z / 40, b[:50], 1.0), 6, ks.Simplex())
    yield (
        "floor",
        lambda: ks.minimize(ks.MeanVariance(Z.T @ Z / 40, b[:50], 1.0), 6, ks.BudgetBox(1, 0, 0.4), min_nonzero=0.1),
    )
    yield "component", lambda: ks.minimize(ks.PrincipalComponent.from_factor(Z), 7, ks.L2Ball())
    yield "logistic", lambda: ks.minimize(ks.Logistic(A, np.sign(b), ridge=1.0), 5)
    yield "huber", lambda: ks.minimize(ks.Huber(A, b, 0.5), 5)
    yield "apdca", lambda: ks.minimize(ks.LeastSquares(A, b), 8, method="apdca")
    yield "restarts in threads", lambda: ks.minimize(ks.Huber(A, b, 0.5), 5, effort=2, n_jobs=2)


PROBLEMS = dict(problems())


def test_two_solves_at_once_are_two_solves_alone():
    alone = {name: solve() for name, solve in PROBLEMS.items()}
    orders = (list(PROBLEMS), [name for name in PROBLEMS for _ in range(2)])
    with ThreadPoolExecutor(2) as pool:
        for order in orders:
            for name, found in zip(order, pool.map(lambda name: PROBLEMS[name](), order), strict=True):
                same(found, alone[name])


def test_one_loss_and_set_in_two_threads():
    rng = np.random.default_rng(6)
    loss, C = (
        ks.LeastSquares(rng.standard_normal((60, 40)), rng.standard_normal(60)),
        ks.Polyhedron(np.ones((1, 40)), [1.0], lower=0.0),
    )
    alone = ks.minimize(ks.LeastSquares(loss.A, loss.b), 6, ks.Polyhedron(np.ones((1, 40)), [1.0], lower=0.0))
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: ks.minimize(loss, 6, C), range(6)):
            same(found, alone)


def test_a_solve_beside_the_main_thread():
    alone = PROBLEMS["least squares"]()
    with ThreadPoolExecutor(1) as pool:
        beside = [pool.submit(PROBLEMS["least squares"]) for _ in range(5)]
        here = [PROBLEMS["least squares"]() for _ in range(5)]
    for found in (*here, *(solve.result() for solve in beside)):
        same(found, alone)


def test_estimators_in_two_threads():
    alone = {name: used(name, clone(model).fit(*data(name)), data(name)[0]) for name, model in ESTIMATORS.items()}
    order = list(ESTIMATORS) * 2
    with ThreadPoolExecutor(2) as pool:
        together = pool.map(lambda name: used(name, clone(ESTIMATORS[name]).fit(*data(name)), data(name)[0]), order)
        for name, found in zip(order, together, strict=True):
            np.testing.assert_array_equal(found, alone[name], err_msg=name)
