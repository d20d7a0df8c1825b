"""Bad input: for each constructor and argument, the values to refuse, and the name that the error must contain."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import ksparse as ks

from .bad_values import INF, NAN, bad_integers, bad_matrices, bad_numbers, bad_vectors, without

ALLOWED = (ValueError, TypeError)  # InfeasibleError is a ValueError, MissingPieceError a TypeError
A, b = np.arange(12.0).reshape(4, 3) % 5, np.array([1.0, 2.0, 0.0, 1.0])
labels, counts, V, r = np.array([0, 1, 1, 0]), np.array([0, 1, 3, 2]), np.diag([1.0, 2.0, 3.0]), np.ones(3)


LOSS = ks.LeastSquares(A, b)
_vector4, _vector3 = bad_vectors(b), bad_vectors(r)
_bound = without(bad_vectors(np.zeros(3)), "inf", "too long", "too short") | {
    "NaN alone": NAN,
    "complex alone": 1j,
    "None": None,
    "bool": True,
}
_indices = {
    "negative": [-1], "float": [0.5], "NaN": [NAN], "twice": [0, 0], "word": "a", "matrix": [[0]], "None": [None],
    "bool": [True], "number": 1.5,
}  # fmt: skip


def _rows():
    """Yield (call with the bad value, bad values, name in the error)."""
    fits = {"LeastSquares": b, "Logistic": labels, "Poisson": counts}
    for name, y in fits.items():
        make, target = getattr(ks, name), "b" if name == "LeastSquares" else "y"
        yield name, lambda bad, make=make, y=y: make(bad, y), bad_matrices(A), "A"
        yield name, lambda bad, make=make: make(A, bad), _vector4 | {"None": None}, target
        yield (
            name,
            lambda bad, make=make, y=y: make(A, y, sample_weight=bad),
            _vector4 | {"negative": -b, "all 0": 0 * b},
            "sample_weight",
        )
        yield (
            name,
            lambda bad, make=make, y=y: make(A, y, ridge=bad),
            without(_vector3 | {"NaN alone": NAN, "below": -1.0}),
            "ridge",
        )
    yield "Logistic", lambda bad: ks.Logistic(A, bad), {"three classes": [0, 1, 2, 1], "halves": [0.5, 1, 1, 0]}, "y"
    yield "Poisson", lambda bad: ks.Poisson(A, bad), {"negative": [0, 1, -2, 1]}, "y"
    yield "Huber", lambda bad: ks.Huber(bad, b, 1.0), bad_matrices(A), "A"
    yield "Huber", lambda bad: ks.Huber(A, bad, 1.0), _vector4, "b"
    yield "Huber", lambda bad: ks.Huber(A, b, bad), bad_numbers(0.0, strict=True), "delta"
    square = bad_matrices(V) | {
        "not square": A,
        "not symmetric": np.triu(np.ones((3, 3))),
        "sparse not symmetric": scipy.sparse.csr_array(np.triu(np.ones((3, 3)))),
    }
    yield "Quadratic", ks.Quadratic, square, "Q"
    yield "Quadratic", lambda bad: ks.Quadratic(V, bad), _vector3, "c"
    yield "MeanVariance", lambda bad: ks.MeanVariance(bad, r, 1.0), square, "V"
    yield "MeanVariance", lambda bad: ks.MeanVariance(V, bad, 1.0), _vector3 | {"None": None}, "r"
    yield "MeanVariance", lambda bad: ks.MeanVariance(V, r, bad), bad_numbers(0.0, strict=True), "alpha"
    table = bad_matrices(A) | {"one row": A[:1], "operator": aslinearoperator(A)}
    yield "from_returns", lambda bad: ks.MeanVariance.from_returns(bad, 1.0), table, "returns"
    yield "PrincipalComponent", ks.PrincipalComponent, square, "V"
    yield "from_data", ks.PrincipalComponent.from_data, table, "X"
    yield "from_factor", ks.PrincipalComponent.from_factor, bad_matrices(A), "Z"
    yield "Custom", lambda bad: ks.Custom(bad, np.sin), {"number": 1.0, "None": None, "word": "f"}, "value"
    yield "Custom", lambda bad: ks.Custom(np.sum, bad), {"number": 1.0, "None": None, "word": "f"}, "gradient"
    yield "Custom", lambda bad: ks.Custom(np.sum, np.sin, n=bad), without(bad_integers(1), "None"), "n"
    yield "Custom", lambda bad: ks.Custom(np.sum, np.sin, lipschitz=bad), without(bad_numbers(0.0), "None"), "lipschitz"
    yield from _sets()
    yield from _calls()


def _sets():
    for name in ("L2Ball", "NonnegativeBall", "L1Ball"):
        yield name, getattr(ks, name), bad_numbers(0.0, strict=True), "radius"
    yield "Simplex", ks.Simplex, bad_numbers(0.0, strict=True), "total"
    yield "Hyperplane", lambda bad: ks.Hyperplane(bad, 1.0), without(_vector3, "too long", "too short"), "a"
    yield "Hyperplane", lambda bad: ks.Hyperplane(r, bad), bad_numbers(), "b"
    yield "Nonnegative", ks.Nonnegative, without(_indices, "None") | {"None inside": [None]}, "indices"
    yield "Box", lambda bad: ks.Box(bad, 1.0), _bound, "lower"
    yield "Box", lambda bad: ks.Box(-1.0, bad), _bound, "upper"
    yield (
        "Box",
        lambda bad: ks.Box(bad, np.zeros(3)),
        {"crossed": 1.0, "all crossed": np.ones(3), "inf": INF, "wrong length": np.zeros(2)},
        "lower",
    )
    yield "BudgetBox", lambda bad: ks.BudgetBox(bad, 0.0, 1.0), bad_numbers(), "total"
    yield "BudgetBox", lambda bad: ks.BudgetBox(1.0, bad, 1.0), _bound, "lower"
    yield "BudgetBox", lambda bad: ks.BudgetBox(1.0, 0.0, bad), _bound, "upper"
    yield (
        "BudgetBox",
        lambda bad: ks.BudgetBox(bad, np.zeros(3), np.ones(3)),
        {"out of reach": 4.0, "below": -1.0},
        "total",
    )
    G, h = np.ones((2, 3)), np.ones(2)
    yield (
        "Polyhedron",
        lambda bad: ks.Polyhedron(bad, h),
        without(bad_matrices(G), "number", "vector", "no rows", "no columns", "sparse empty"),
        "G",
    )
    yield "Polyhedron", lambda bad: ks.Polyhedron(G, bad), without(bad_vectors(h), "matrix"), "h"
    yield (
        "Polyhedron",
        lambda bad: ks.Polyhedron(None, None, bad, h),
        without(bad_matrices(G), "number", "vector", "no rows", "no columns", "sparse empty"),
        "E",
    )
    yield "Polyhedron", lambda bad: ks.Polyhedron(None, None, G, bad), without(bad_vectors(h), "matrix"), "f"
    yield "Polyhedron", lambda bad: ks.Polyhedron(G, h, lower=bad), _bound, "lower"
    yield "Polyhedron", lambda bad: ks.Polyhedron(G, h, upper=bad), _bound, "upper"
    yield "CustomSet", lambda bad: ks.CustomSet(bad, np.sum), {"number": 1.0, "None": None}, "project"
    yield "CustomSet", lambda bad: ks.CustomSet(np.sin, bad), {"number": 1.0, "None": None}, "violation"
    yield "CustomSet", lambda bad: ks.CustomSet(np.sin, np.sum, n=bad), without(bad_integers(1), "None"), "n"


def _calls():
    def solve(**more):
        return ks.minimize(LOSS, 2, **more)

    yield (
        "minimize",
        lambda bad: ks.minimize(bad, 1),
        {"array": A, "None": None, "word": "x", "class": ks.LeastSquares},
        "loss",
    )
    yield "minimize", lambda bad: ks.minimize(LOSS, bad), bad_integers(0, 3), "k"
    yield (
        "minimize",
        lambda bad: ks.minimize(LOSS, 1, bad),
        {"array": A, "word": "x", "class": ks.Box, "wrong length": ks.Box(np.zeros(4), 1.0)},
        "C",
    )
    yield (
        "minimize",
        lambda bad: solve(method=bad),
        {"unknown": "newton", "number": 3, "None": None, "class": ks.APDCA},
        "method",
    )
    yield (
        "minimize",
        lambda bad: solve(rho=bad),
        without(bad_numbers(0.0, strict=True), "list", "array")
        | {"empty": [], "negative inside": [1.0, -1.0], "NaN inside": [NAN]},
        "rho",
    )
    yield "minimize", lambda bad: solve(x0=bad), _vector3 | {"number": 1.0}, "x0"
    yield "minimize", lambda bad: solve(forced_in=bad), _indices | {"beyond": [3]}, "forced_in"
    yield "minimize", lambda bad: solve(forced_out=bad), _indices | {"beyond": [3]}, "forced_out"
    yield "minimize", lambda bad: solve(min_nonzero=bad), without(bad_numbers(0.0), "array", "list"), "min_nonzero"
    yield "minimize", lambda bad: solve(effort=bad), without(bad_integers(0), "None"), "effort"
    yield (
        "minimize",
        lambda bad: solve(effort=2, n_jobs=bad),
        {"word": "a", "float": 1.5, "zero": 0, "list": [1]},
        "n_jobs",
    )
    yield (
        "minimize",
        lambda bad: solve(random_state=bad),
        {"word": "a", "float": 0.5, "negative": -1, "bool": True, "list": [1]},
        "random_state",
    )
    yield "minimize", lambda bad: solve(tol=bad), bad_numbers(0.0), "tol"
    yield "minimize", lambda bad: solve(max_iter=bad), bad_integers(0), "max_iter"
    yield "minimize", lambda bad: solve(max_time=bad), without(bad_numbers(0.0), "None"), "max_time"
    yield "minimize", lambda bad: solve(callback=bad), {"number": 3, "word": "f", "list": []}, "callback"
    yield "minimize", lambda bad: solve(verbose=bad), {"word": "a", "None": None, "list": []}, "verbose"
    yield "minimize", lambda bad: solve(step=bad), {"unknown": "long", "number": 3, "None": None}, "step"
    yield (
        "k_path",
        lambda bad: ks.k_path(LOSS, bad),
        {"empty": [], "zero": [0], "above": [4], "float": [1.5], "number": 2, "word": "ab", "None": None},
        "ks",
    )
    yield (
        "minimize_penalized",
        lambda bad: ks.minimize_penalized(LOSS, bad),
        {"number": 1.0, "None": None, "class": ks.L1},
        "penalty",
    )
    yield "minimize_penalized", lambda bad: ks.minimize_penalized(LOSS, ks.L1(1.0), x0=bad), _vector3, "x0"
    yield (
        "minimize_penalized",
        lambda bad: ks.minimize_penalized(LOSS, ks.L1(1.0), method=bad),
        {"unknown": "newton", "number": 3},
        "method",
    )
    for name in ("L1", "L1MinusL2"):
        yield name, getattr(ks, name), bad_numbers(0.0, strict=True), "lam"
    for make in (ks.CappedL1, ks.LogSum, ks.SCAD, ks.MCP):
        yield make.__name__, lambda bad, make=make: make(bad, 3.0), bad_numbers(0.0, strict=True), "lam"
        yield make.__name__, lambda bad, make=make: make(1.0, bad), bad_numbers(0.0, strict=True), "theta"
    for make in (ks.TopK1, ks.TopK2):
        yield make.__name__, lambda bad, make=make: make(bad, 2), bad_numbers(0.0, strict=True), "rho"
        yield make.__name__, lambda bad, make=make: make(1.0, bad), bad_integers(1), "k"
    yield from _broken_functions()


def _broken_functions():
    """User functions with invalid results: refused during the run, with the function's name."""

    def with_value(value):
        return ks.minimize(ks.Custom(value, lambda x: 2 * x, n=3), 2)

    def with_gradient(gradient):
        return ks.minimize(ks.Custom(lambda x: float(x @ x), gradient, n=3), 2)

    def with_project(project):
        return ks.minimize(LOSS, 2, ks.CustomSet(project, lambda x: 0.0, n=3))

    def with_violation(violation):
        return ks.minimize(LOSS, 2, ks.CustomSet(lambda u: u, violation, n=3))

    values = {
        "vector": lambda x: x,
        "None": lambda x: None,
        "word": lambda x: "a",
        "NaN": lambda x: NAN,
        "complex": lambda x: 1j,
    }
    yield "Custom", with_value, values, "value"
    gradients = {
        "short": lambda x: np.ones(2),
        "NaN": lambda x: NAN * x,
        "None": lambda x: None,
        "number": lambda x: 1.0,
    }
    yield "Custom", with_gradient, gradients | {"word": lambda x: "a", "complex": lambda x: 1j * x}, "gradient"
    points = {"short": lambda u: u[:1], "NaN": lambda u: NAN * u, "None": lambda u: None, "number": lambda u: 1.0}
    yield "CustomSet", with_project, points, "project"
    yield "CustomSet", with_violation, without(values, "complex") | {"negative": lambda x: -1.0}, "violation"


def bad_inputs():
    """Return (place, kind of value, call, name in the error) for each bad value."""
    return [
        (f"{where} {name}", which, lambda call=call, value=value: call(value), name)
        for where, call, values, name in _rows()
        for which, value in values.items()
    ]


def refusal(call, name):
    """Return None if a call is refused correctly, else a description of what happened."""
    try:
        call()
    except ALLOWED as error:
        words = str(error).replace("(", " ").replace("'", " ").replace(",", " ").replace(":", " ").split()
        return None if name in words else f"{type(error).__name__} without the name {name!r}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"
