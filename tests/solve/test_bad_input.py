"""Bad input: each error names the argument, the given value and the requirement."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import ksparse as ks
from ksparse.util.checks import check_n_jobs

A, b = np.arange(12.0).reshape(4, 3), np.ones(4)
loss = ks.LeastSquares(A, b)
nan, inf = float("nan"), float("inf")


class OneWay:
    shape = (4, 3)

    def __matmul__(self, x):
        return A @ x


def spoiled(array, value):
    array = np.array(array, dtype=float)
    array.flat[0] = value
    return array


CASES = {
    "NaN in A": (lambda: ks.LeastSquares(spoiled(A, nan), b), ValueError, "A must not contain NaN"),
    "inf in A": (lambda: ks.LeastSquares(spoiled(A, inf), b), ValueError, "A must be finite"),
    "NaN in sparse A": (
        lambda: ks.LeastSquares(scipy.sparse.csr_array(spoiled(A, nan)), b), ValueError, "A must be finite",
    ),
    "NaN in b": (lambda: ks.LeastSquares(A, spoiled(b, nan)), ValueError, "b must not contain NaN"),
    "inf in y": (lambda: ks.Logistic(A, spoiled(b, inf)), ValueError, "y must be finite"),
    "NaN in sample_weight": (
        lambda: ks.LeastSquares(A, b, spoiled(b, nan)), ValueError, "sample_weight must not contain NaN",
    ),
    "negative sample_weight": (lambda: ks.LeastSquares(A, b, -b), ValueError, "sample_weight must be >= 0"),
    "all weights 0": (lambda: ks.LeastSquares(A, b, 0 * b), ValueError, "at least one positive"),
    "NaN in Q": (lambda: ks.Quadratic(spoiled(np.eye(3), nan)), ValueError, "Q must not contain NaN"),
    "NaN in V": (lambda: ks.PrincipalComponent(spoiled(np.eye(3), nan)), ValueError, "V must not contain NaN"),
    "NaN in r": (lambda: ks.MeanVariance(np.eye(3), [nan, 0, 0], 1.0), ValueError, "r must not contain NaN"),
    "NaN in X": (lambda: ks.PrincipalComponent.from_data(spoiled(A, nan)), ValueError, "X must not contain NaN"),
    "NaN in x0": (lambda: ks.minimize(loss, 1, x0=[nan, 0, 0]), ValueError, "x0 must not contain NaN"),
    "NaN in a": (lambda: ks.Hyperplane([nan, 1]), ValueError, "a must not contain NaN"),
    "NaN in lower": (lambda: ks.Box([nan, 1], 2), ValueError, "lower must not contain NaN"),
    "NaN as upper": (lambda: ks.Box(0, nan), ValueError, "upper must not be NaN"),
    "NaN in G": (lambda: ks.Polyhedron([[nan, 1]], [1]), ValueError, "G must not contain NaN"),
    "inf in h": (lambda: ks.Polyhedron([[1, 1]], [inf]), ValueError, "h must be finite"),
    "b too long": (lambda: ks.LeastSquares(A, np.ones(5)), ValueError, "b must have length 4, got 5"),
    "b a matrix": (lambda: ks.LeastSquares(A, np.ones((4, 1))), ValueError, r"b must have 1 axis, got shape \(4, 1\)"),
    "A a vector": (lambda: ks.LeastSquares(b, b), ValueError, r"A must have 2 axes, got shape \(4,\)"),
    "Q not square": (lambda: ks.Quadratic(A), ValueError, "Q must be square"),
    "Q not symmetric": (lambda: ks.Quadratic([[0.0, 1], [0, 0]]), ValueError, "Q must be symmetric"),
    "V not symmetric, sparse": (
        lambda: ks.PrincipalComponent(scipy.sparse.csr_array([[0.0, 1], [0, 0]])), ValueError, "symmetric",
    ),
    "operator not symmetric": (
        lambda: ks.Quadratic(scipy.sparse.linalg.aslinearoperator(np.array([[0.0, 1], [0, 0]]))), ValueError,
        "Q must be symmetric",
    ),
    "c too short": (lambda: ks.Quadratic(np.eye(3), np.ones(2)), ValueError, "c must have length 3, got 2"),
    "x0 too long": (lambda: ks.minimize(loss, 1, x0=np.ones(4)), ValueError, "x0 must have length 3, got 4"),
    "x of wrong length": (lambda: loss.value(np.ones(2)), ValueError, "x must have length 3, got 2"),
    "C of other length": (
        lambda: ks.minimize(loss, 1, ks.Box(np.zeros(4), 1.0)), ValueError, "C has 4 variables, the loss has 3",
    ),
    "lower and upper": (lambda: ks.Box(np.zeros(2), np.ones(3)), ValueError, "same length"),
    "G and E": (lambda: ks.Polyhedron([[1, 1]], [1], [[1, 1, 1]], [1]), ValueError, "same number of variables"),
    "G without h": (lambda: ks.Polyhedron([[1, 1]], None), ValueError, "G and h must be given together"),
    "Polyhedron of nothing": (lambda: ks.Polyhedron(None, None), ValueError, "needs one of G, E"),
    "k < 0": (lambda: ks.minimize(loss, -1), ValueError, r"k must be an integer in 0\.\.3, got -1"),
    "k > n": (lambda: ks.minimize(loss, 4), ValueError, r"k must be an integer in 0\.\.3, got 4"),
    "k a float": (lambda: ks.minimize(loss, 2.0), TypeError, r"k must be an integer in 0\.\.3, got float 2.0"),
    "k a bool": (lambda: ks.minimize(loss, True), TypeError, "k must be an integer"),
    "k of a penalty > n": (
        lambda: ks.minimize_penalized(loss, ks.TopK1(1.0, 4)), ValueError, r"k must be an integer in 1\.\.3, got 4",
    ),
    "rho = 0": (lambda: ks.minimize(loss, 1, rho=0), ValueError, "rho must be > 0, got 0"),
    "rho < 0 in a sequence": (lambda: ks.minimize(loss, 1, rho=[1.0, -1.0]), ValueError, "rho must be > 0, got -1"),
    "rho empty": (lambda: ks.minimize(loss, 1, rho=[]), ValueError, "rho must hold at least one weight"),
    "rho a word": (lambda: ks.minimize(loss, 1, rho="best"), ValueError, "rho must be 'auto'"),
    "rho of TopK2": (lambda: ks.TopK2(-1.0, 2), ValueError, "rho must be > 0, got -1"),
    "lam = 0": (lambda: ks.L1(0.0), ValueError, "lam must be > 0, got 0"),
    "lam NaN": (lambda: ks.L1(nan), ValueError, "lam must be finite, got nan"),
    "lam a word": (lambda: ks.L1("1"), TypeError, "lam must be a real number, got str '1'"),
    "SCAD theta": (lambda: ks.SCAD(1.0, 2.0), ValueError, "theta must be > 2, got 2"),
    "MCP theta": (lambda: ks.MCP(1.0, 0.0), ValueError, "theta must be > 0, got 0"),
    "CappedL1 theta": (lambda: ks.CappedL1(1.0, -1.0), ValueError, "theta must be > 0, got -1"),
    "LogSum theta": (lambda: ks.LogSum(1.0, 0.0), ValueError, "theta must be > 0, got 0"),
    "delta": (lambda: ks.Huber(A, b, 0.0), ValueError, "delta must be > 0, got 0"),
    "alpha": (lambda: ks.MeanVariance(np.eye(3), np.ones(3), 0.0), ValueError, "alpha must be > 0"),
    "radius": (lambda: ks.L2Ball(0.0), ValueError, "radius must be > 0"),
    "radius without a square": (
        lambda: ks.L2Ball(1e300), ValueError, r"radius must be between 1e-150 and 1e\+150, got 1e\+300",
    ),
    "radius with a square of 0": (
        lambda: ks.NonnegativeBall(1e-200), ValueError, "radius must be between .* got 1e-200",
    ),
    "negative times": (lambda: ks.Cox(A, [1, 2, -3, 4], b), ValueError, "time must be >= 0, got -3 in row 2"),
    "setting of 0": (lambda: ks.SearchSettings(clear=0), ValueError, "settings.clear must be > 0, got 0"),
    "count of 0": (
        lambda: ks.SearchSettings(entering=0), ValueError, "settings.entering must be an integer >= 1, got 0",
    ),
    "setting of the wrong length": (
        lambda: ks.SearchSettings(kick=0.5), TypeError, "settings.kick must be a tuple of 2 numbers, got 0.5",
    ),
    "two numbers for one": (
        lambda: ks.SearchSettings(walks=(1, 2)), TypeError, "settings.walks must be an integer >= 0, got tuple",
    ),
    "range that falls": (
        lambda: ks.SearchSettings(kick=(0.5, 0.2)), ValueError, r"settings.kick must be \(least, most\), got",
    ),
    "total": (lambda: ks.Simplex(-1.0), ValueError, "total must be > 0"),
    "labels": (lambda: ks.Logistic(A, [0, 1, 2, 1]), ValueError, r"y must hold labels in \{-1, 1\} or in \{0, 1\}"),
    "counts": (lambda: ks.Poisson(A, [0, 1, -2, 1]), ValueError, "y must hold counts >= 0, got -2"),
    "indices": (lambda: ks.Nonnegative([0, -1]), ValueError, "indices must be indices >= 0, got -1"),
    "indices twice": (lambda: ks.Nonnegative([0, 0]), ValueError, "must not repeat"),
    "indices not integers": (lambda: ks.Nonnegative([0.5]), TypeError, "indices must be a list of integer indices"),
    "indices beyond n": (
        lambda: ks.minimize(loss, 1, ks.Nonnegative([7])), ValueError, "below the number of variables 3, got 7",
    ),
    "unknown method": (
        lambda: ks.minimize(loss, 1, method="newton"), ValueError, "method must be one of .*apdca.*pdcae.*got 'newton'",
    ),
    "method of no kind": (lambda: ks.minimize(loss, 1, method=3), TypeError, "method must be a name or an object"),
    "unknown step": (
        lambda: ks.minimize_penalized(loss, ks.L1(1), step="long"), ValueError,
        "step must be one of backtracking, fixed",
    ),
    "unknown stop": (
        lambda: ks.minimize_penalized(loss, ks.L1(1), stop="never"), ValueError, "stop must be 'objective' or 'step'",
    ),
    "L of FixedStep": (lambda: ks.FixedStep(0.0), ValueError, "L must be > 0"),
    "eta of Backtracking": (lambda: ks.Backtracking(eta=1.0), ValueError, "eta must be > 1"),
    "sigma of Backtracking": (lambda: ks.Backtracking(sigma=1.0), ValueError, "sigma must be > 0 and < 1"),
    "eta of APDCA": (lambda: ks.APDCA(eta=1.5), ValueError, "eta must be > 0 and <= 1"),
    "delta of nmAPG": (lambda: ks.NmAPG(delta=0.0), ValueError, "delta must be > 0"),
    "tol": (lambda: ks.minimize(loss, 1, tol=-1.0), ValueError, "tol must be >= 0"),
    "max_iter": (lambda: ks.minimize(loss, 1, max_iter=1.5), TypeError, "max_iter must be an integer"),
    "max_time": (lambda: ks.minimize(loss, 1, max_time=-1.0), ValueError, "max_time must be >= 0"),
    "callback": (lambda: ks.minimize(loss, 1, callback=3), TypeError, "callback must be callable"),
    "float16": (
        lambda: ks.LeastSquares(A.astype(np.float16), b), TypeError,
        "A must be float32 or float64 .* got dtype float16",
    ),
    "object": (
        lambda: ks.LeastSquares(A.astype(object), b), TypeError, "A must be float32 or float64 .* got dtype object",
    ),
    "complex": (
        lambda: ks.LeastSquares(A, b.astype(complex)), TypeError,
        "b must be float32 or float64 .* got dtype complex128",
    ),
    "complex sparse": (
        lambda: ks.LeastSquares(scipy.sparse.csr_array(A.astype(complex)), b), TypeError, "got dtype complex128",
    ),
    "complex operator": (
        lambda: ks.LeastSquares(scipy.sparse.linalg.aslinearoperator(A.astype(complex)), b), TypeError,
        "got dtype complex128",
    ),
    "text": (lambda: ks.LeastSquares([["a"]], [1]), TypeError, "A must be float32 or float64"),
    "text as counts": (
        lambda: ks.Poisson(A, ["1", "2", "3", "4"]), TypeError, "y must be float32 or float64 .*it holds text",
    ),
    "text as weights": (
        lambda: ks.LeastSquares(A, b, ["1"] * 4), TypeError, "sample_weight must be float32 or float64 .*it holds text",
    ),
    "objects as b": (
        lambda: ks.LeastSquares(A, b.astype(object)), TypeError, "b must be .* convert its entries to numbers first",
    ),
    "rows of several lengths": (
        lambda: ks.LeastSquares([[1, 2], [3]], [1, 2]), ValueError, "A must be an array of numbers whose rows",
    ),
    "an operator without adjoint": (
        lambda: ks.LeastSquares(LinearOperator((4, 3), matvec=lambda x: A @ x, dtype=float), b), TypeError,
        r"A must offer products with its transpose, A\.T @ y: .*rmatvec",
    ),
    "an operator without transpose": (
        lambda: ks.LeastSquares(OneWay(), b), TypeError, "A must offer products with its transpose",
    ),
    "an operator of another shape": (
        lambda: ks.LeastSquares(LinearOperator((4, 3), matvec=lambda x: A @ x, rmatvec=lambda y: y, dtype=float), b),
        TypeError, "A must offer products with its transpose",
    ),
    "no rows": (lambda: ks.LeastSquares(np.zeros((0, 3)), []), ValueError, r"A must not be empty, got shape \(0, 3\)"),
    "no columns": (lambda: ks.LeastSquares(np.zeros((3, 0)), b[:3]), ValueError, "A must not be empty"),
    "no rows, sparse": (lambda: ks.LeastSquares(scipy.sparse.csr_array((0, 3)), []), ValueError, "nonempty"),
    "one row of data": (lambda: ks.PrincipalComponent.from_data(A[:1]), ValueError, "X must have at least 2 rows"),
    "loss of no kind": (lambda: ks.minimize(A, 1), TypeError, "loss must be an instance of ksparse.Loss, got ndarray"),
    "C of no kind": (
        lambda: ks.minimize(loss, 1, "box"), TypeError, "C must be an instance of ksparse.ConvexSet, got str",
    ),
    "penalty of no kind": (
        lambda: ks.minimize_penalized(loss, 1.0), TypeError, "penalty must be an instance of ksparse.Penalty",
    ),
    "value not callable": (lambda: ks.Custom(1, np.sin), TypeError, "value must be callable"),
    "project not callable": (lambda: ks.CustomSet(1, np.sin), TypeError, "project must be callable"),
    "Custom of unknown length": (
        lambda: ks.minimize(ks.Custom(np.sum, np.ones_like), 1), ValueError, "number of variables is not known",
    ),
    "value of a vector": (
        lambda: ks.minimize(ks.Custom(lambda x: x, np.ones_like, n=2), 1, rho=1.0), TypeError,
        r"value\(x\) must return one number",
    ),
    "value of another length": (
        lambda: ks.minimize(ks.Custom(lambda x: x @ np.ones(3), np.ones_like, n=5), 2), ValueError,
        r"value\(x\) failed for an x of length 5: ",
    ),
    "gradient of another length": (
        lambda: ks.minimize(ks.Custom(lambda x: float(x @ x), lambda x: x[[7]], n=5), 2), IndexError,
        r"gradient\(x\) failed for an x of",
    ),
    "product of another length": (
        lambda: ks.minimize(
            ks.Custom(lambda x: float(x @ x), lambda x: 2 * x, n=5, product=lambda x, d: np.eye(3) @ d), 2
        ), ValueError,
        r"product\(x, d\) failed for an x of length 5: ",
    ),
    "projection of another length": (
        lambda: ks.minimize(loss, 1, ks.CustomSet(lambda u: np.eye(4) @ u, lambda x: 0.0)), ValueError,
        r"project\(u\) failed for an x of length 3",
    ),
    "gradient of wrong shape": (
        lambda: ks.minimize(ks.Custom(lambda x: 0.0, lambda x: np.ones(3), n=2), 1, rho=1.0), ValueError,
        r"gradient\(x\) must have shape",
    ),
    "projection of wrong shape": (
        lambda: ks.minimize(loss, 1, ks.CustomSet(lambda u: 0.0, lambda x: 0.0), rho=1.0), ValueError,
        r"project\(u\) must have shape",
    ),
    "violation negative": (
        lambda: ks.minimize(loss, 1, ks.CustomSet(lambda u: u, lambda x: -1.0), rho=1.0), ValueError,
        r"violation\(x\) must be a number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_by_name(name):
    call, kind, words = CASES[name]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("value", [None, 1, -1, 2, np.int64(3)])
def test_numbers_of_jobs(value):
    assert check_n_jobs(value) == value


@pytest.mark.parametrize(
    ("value", "error"), [("x", TypeError), (1.5, TypeError), (True, TypeError), ([2], TypeError), (0, ValueError)]
)
def test_what_is_no_number_of_jobs_is_refused_by_name(value, error):
    with pytest.raises(error, match="n_jobs must be None or an integer other than 0, got"):
        check_n_jobs(value)


def test_a_symmetric_operator_needs_no_adjoint():
    Q = np.diag([1.0, 2.0, 3.0])
    loss = ks.Quadratic(LinearOperator((3, 3), matvec=lambda x: Q @ x, dtype=float), np.array([-1.0, -2.0, -9.0]))
    assert ks.minimize(loss, 1).support == [2]


@pytest.mark.needs("torch")
def test_torch_half_precision_is_refused_by_name():
    import torch

    with pytest.raises(TypeError, match=r"A must be float32 or float64 .*float16"):
        ks.LeastSquares(torch.ones((3, 2), dtype=torch.float16), torch.ones(3))


def test_integers_lists_and_frames_are_welcome():
    frame = {"x": [1, 2, 3], "y": [0, 1, 0]}
    assert ks.LeastSquares([[1, 0], [2, 1], [3, 0]], [1, 2, 3]).value([1, 0]) == 0.0
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame(frame)
    result = ks.minimize(ks.LeastSquares(table, table["x"]), 1, rho=1.0)
    np.testing.assert_allclose(result.x, [1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("held", ["dates or times", "text"])
def test_a_column_without_numbers_is_named(held):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    column = pd.date_range("2020-01-01", periods=4) if held != "text" else list("uvwx")
    with pytest.raises(TypeError, match=f"A must be float32 or float64 .*: column 'odd' holds {held}"):
        ks.LeastSquares(pd.DataFrame(A).assign(odd=column), b)


@pytest.mark.parametrize("radius", [1e-120, 1e100])
@pytest.mark.parametrize("C", [ks.L2Ball, ks.NonnegativeBall])
def test_the_largest_and_smallest_balls_are_searched(C, radius):
    for loss in (ks.PrincipalComponent(A.T @ A), ks.LeastSquares(A, b), ks.Quadratic(-A.T @ A, np.ones(3))):
        for settings in (None, ks.SearchSettings(enumerated=0)):
            found = ks.minimize(loss, 2, C(radius), settings=settings)
            assert np.isfinite(found.fun)
            assert np.linalg.norm(found.x / radius) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda loss: ks.minimize(loss, 1, method=ks.APDCA), "got the class APDCA: write APDCA()"),
        (lambda loss: ks.minimize_penalized(loss, ks.L1(1.0), step=0.1), "step must be a step rule"),
        (lambda loss: ks.APDCA(rule=0.1), "rule must be a step rule"),
        (lambda loss: ks.PDCA(rule=ks.Backtracking), "rule must be a step rule"),
        (lambda loss: ks.minimize(loss, 1, verbose="x"), "verbose must be an integer"),
        (lambda loss: ks.LeastSquares(np.ma.masked_array(np.eye(2), mask=np.eye(2)), np.ones(2)), "masked"),
    ],
)
def test_pieces_of_the_wrong_kind_are_named(call, words):
    with pytest.raises(TypeError, match=words.replace("(", r"\(").replace(")", r"\)")):
        call(ks.LeastSquares(np.eye(3), np.ones(3)))
