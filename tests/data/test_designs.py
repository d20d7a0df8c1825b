"""Design matrices of every kind: products equal NumPy's in double precision, `minimize` gives the same answers."""

import warnings

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import ksparse as ks
from conftest import cases
from ksparse import data as data_package
from ksparse.data import Blocks, DaskRows, Dense, Device, Operator, Sparse, check_data, design_of, in_double
from ksparse.data.products import dense
from ksparse.data.sparse import CentredSparse

M, N, K = 90, 24, 4


class Own:
    """A user's object with shape, dtype and row slices."""

    def __init__(self, A):
        self._A, self.shape, self.dtype, self.reads = A, A.shape, A.dtype, 0

    def __getitem__(self, rows):
        self.reads += 1
        return self._A[rows]


def memmap(A, tmp_path):
    np.save(tmp_path / "A.npy", A)
    return Blocks(np.load(tmp_path / "A.npy", mmap_mode="r"), 13)


def hdf5(A, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    file = h5py.File(tmp_path / "A.h5", "w")
    return check_data(file.create_dataset("A", data=A, chunks=(16, N)), "A")


def zarr(A, tmp_path):
    return check_data(pytest.importorskip("zarr", reason="zarr is not installed").array(A, chunks=(16, N)), "A")


def dask(A, tmp_path):
    return check_data(
        pytest.importorskip("dask.array", reason="dask is not installed").from_array(A, chunks=(16, N)), "A"
    )


def dask_of_torch(A, tmp_path):
    """Return a dask array of PyTorch blocks, as on workers with a GPU each."""
    import torch

    da, delayed = pytest.importorskip("dask.array", reason="dask is not installed"), pytest.importorskip("dask").delayed
    rows = [A[begin : begin + 16] for begin in range(0, M, 16)]
    return check_data(
        da.concatenate([da.from_delayed(delayed(torch.tensor)(one), one.shape, dtype=A.dtype) for one in rows]), "A"
    )


def torch(A, tmp_path):
    import torch

    return Device(torch.tensor(A))


def folder(A, tmp_path):
    np.save(tmp_path / "part0.npy", A[:40])
    np.save(tmp_path / "part1.npy", A[40:])
    return ks.blocks(tmp_path, 17)


def parquet(A, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pandas.DataFrame(A, columns=[f"x{j}" for j in range(N)]).to_parquet(tmp_path / "A.parquet", row_group_size=20)
    return ks.blocks(str(tmp_path / "A.parquet"), 33)


KINDS = {
    "dense": lambda A, _: Dense(A),
    "csr": lambda A, _: Sparse(scipy.sparse.csr_array(A)),
    "csc": lambda A, _: Sparse(scipy.sparse.csc_array(A)),
    "centred": lambda A, _: CentredSparse(scipy.sparse.csr_array(A + 1.0), np.ones(N, A.dtype), np.ones(N, A.dtype)),
    "operator": lambda A, _: Operator(aslinearoperator(A)),
    "known": lambda A, _: ks.operator(
        aslinearoperator(A), diagonal=np.square(A.astype(float)).sum(axis=0), columns=lambda S: A[:, S]
    ),
    "array": lambda A, _: Blocks(A, 11),
    "own": lambda A, _: check_data(Own(A), "A"),
    "memmap": memmap,
    "hdf5": hdf5,
    "zarr": zarr,
    "dask": dask,
    "dask of torch": dask_of_torch,
    "torch": torch,
    "strict": lambda A, _: Device(array_api_strict.asarray(A)),  # refuses to mix with NumPy's arrays, as a GPU's do
    "folder": folder,
    "parquet": parquet,
}


@pytest.fixture(params=[np.float64, np.float32], ids=["double", "single"])
def data(request, rng):
    A, x = rng.standard_normal((M, N)).astype(request.param), np.zeros(N)
    x[[2, 7, 11, 20]] = 2.0, -1.5, 1.0, 3.0
    return A, (A @ x + 0.1 * rng.standard_normal(M)).astype(request.param)


@pytest.mark.parametrize("kind", cases(KINDS))
def test_products_are_those_of_numpy_in_double_precision(kind, data, tmp_path, rng):
    given, design = data[0], KINDS[kind](data[0], tmp_path).as_float64()
    A = (given + 1.0).astype(float) - 1.0 if kind == "centred" else given.astype(float)  # which rounds
    x, r, w, S = rng.standard_normal(N), rng.standard_normal(M), rng.random(M), np.array([3, 0, 17])
    assert design.shape == (M, N)
    np.testing.assert_allclose(design @ x, A @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(design @ np.outer(x, [1, 2]), A @ np.outer(x, [1, 2]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(design.T @ r, A.T @ r, rtol=1e-12, atol=1e-12)
    for weight in (None, w):
        H = A.T @ (A if weight is None else weight[:, None] * A)
        np.testing.assert_allclose(design.column_square_sums(weight), np.diag(H), rtol=1e-12)
        np.testing.assert_allclose(design.gram(S, weight), H[S], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(dense(design.columns(S)), A[:, S])
    np.testing.assert_array_equal(design.dense(), A)
    X, R = np.outer([1, 2], x), np.outer([1, 2], r)
    np.testing.assert_allclose(design.times(X), X @ A.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(design.adjoint_products(R), R @ A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        design.column_norms(), np.linalg.norm(A, axis=0), rtol=1.0 if kind == "operator" else 1e-12
    )
    assert design.magnitude_scale() >= np.abs(A).max() or kind in ("operator", "known")


@pytest.mark.parametrize("kind", cases(kind for kind in KINDS if kind not in ("operator", "known", "centred", "torch")))
def test_columns_centred_and_scaled(kind, data, tmp_path, rng):
    A, design = data[0].astype(float), KINDS[kind](data[0], tmp_path).as_float64()
    share = rng.random(M)
    share /= share.sum()
    mean, root = design.moments(share, centre=True)
    np.testing.assert_allclose(mean, share @ A if design.can_centre else 0.0, atol=1e-14)
    np.testing.assert_allclose(root, np.sqrt(share @ np.square(A - mean)), rtol=1e-12)
    expected = (A - share @ A) / root
    shifted = design_of(design.shifted(share @ A, root))
    np.testing.assert_allclose(shifted.dense(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        design_of(shifted.shifted(np.zeros(N), np.full(N, 4.0))).dense(), expected / 4.0, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        design_of(shifted.with_ones()).dense(), np.column_stack([expected, np.ones(M)]), rtol=1e-12, atol=1e-12
    )
    gone = np.where(np.arange(N) == 3, np.inf, root)
    assert not design_of(design.shifted(np.zeros(N), gone)).dense()[:, 3].any()


def test_a_constant_column_is_no_column(rng):
    A = rng.standard_normal((50, 3))
    A[:, 1] = 0.1
    for design in (Dense(A), Blocks(A, 7)):
        assert design.moments(np.full(50, 0.02), centre=True)[1][1] == 0.0


@pytest.mark.parametrize("kind", cases(kind for kind in KINDS if kind not in ("operator", "known", "centred")))
def test_one_pass_each(kind, data, tmp_path):
    design = KINDS[kind](data[0], tmp_path).as_float64()
    for work in (
        lambda: design @ np.ones(N),
        lambda: design.T @ np.ones(M),
        lambda: design.gram(np.array([1, 2]), np.ones(M)),
    ):
        before = design.passes
        work()
        assert design.passes == before + 1


@pytest.mark.parametrize("loss", ["squares", "logistic"])
@pytest.mark.parametrize("kind", cases(KINDS))
def test_the_answers_are_those_of_numpy(kind, loss, data, tmp_path):
    A, b = data
    design = KINDS[kind](A, tmp_path)
    if loss == "squares":
        pieces = [ks.LeastSquares(A.astype(float), b.astype(float)), ks.LeastSquares(design, b)]
    else:
        y = (b > 0).astype(float)
        pieces = [ks.Logistic(A.astype(float), y, ridge=0.5), ks.Logistic(design, y, ridge=0.5)]
    numpy, found = (ks.minimize(piece, K) for piece in pieces)
    np.testing.assert_array_equal(found.support, numpy.support)
    assert found.fun == pytest.approx(numpy.fun, rel=1e-5)
    assert found.status == numpy.status
    assert found.passes > 0
    assert "over the data" in repr(found)


@pytest.mark.parametrize("kind", ["own", "dask"])
def test_the_papers_methods_and_paths(kind, data, tmp_path):
    A, b = data
    design = KINDS[kind](A, tmp_path)
    assert ks.minimize(ks.LeastSquares(design, b), K, method="apdca", max_iter=300).success
    path, numpy = (ks.k_path(ks.LeastSquares(given, b), [1, 2, 4]) for given in (design, A))
    assert [list(one.support) for one in path.results] == [list(one.support) for one in numpy.results]


def test_large_single_precision_data_are_not_copied(rng):
    A = rng.standard_normal((600, 200)).astype(np.float32)
    assert isinstance(in_double(A), np.ndarray)
    large = np.lib.stride_tricks.as_strided(A, (data_package.LARGE // 200 + 1, 200), (0, 4))
    assert in_double(large).source is large
    assert design_of(A).unwrapped is A
    assert in_double(A.astype(float)).dtype == np.float64


def test_what_no_loss_can_be_computed_of(rng):
    A, b = rng.standard_normal((20, 5)), np.ones(20)
    for value, words in ((np.nan, "must not contain NaN"), (np.inf, "must be finite")):
        broken = A.copy()
        broken[13, 2] = value
        with pytest.raises(ValueError, match=f"A {words}"):
            ks.LeastSquares(Own(broken), b)
    with pytest.raises(ValueError, match="rescale the data"):
        ks.LeastSquares(Own(1e200 * A), b)
    with pytest.raises(TypeError, match="A must be float32 or float64"):
        ks.LeastSquares(Own(A.astype(complex)), b)
    with pytest.raises(ValueError, match="A must be a nonempty matrix"):
        ks.LeastSquares(Own(A[:, :0]), b)
    with pytest.raises(ValueError, match="b must have length 20"):
        ks.LeastSquares(Own(A), np.ones(19))


def test_dask_of_unknown_size_and_by_columns(rng):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    A = da.from_array(rng.standard_normal((20, 6)), chunks=(5, 3))
    with pytest.warns(UserWarning, match="chunked by columns"):
        assert isinstance(check_data(A, "A"), DaskRows)
    with pytest.raises(ValueError, match="unknown size"):
        ks.LeastSquares(A[A[:, 0] > 0], np.ones(20))


def test_workers_of_a_cluster(rng):
    """Two worker processes return only sums and k columns."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    import dask.array as da

    A = rng.standard_normal((400, 40))
    b = A[:, [3, 17, 30]] @ np.array([1.0, -2.0, 1.5]) + 0.1 * rng.standard_normal(400)
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        warnings.simplefilter("ignore")
        found = ks.minimize(ks.LeastSquares(da.from_array(A, chunks=(100, 40)).persist(), b), 3)
    numpy = ks.minimize(ks.LeastSquares(A, b), 3)
    np.testing.assert_array_equal(found.support, numpy.support)
    assert found.fun == pytest.approx(numpy.fun, rel=1e-12)


def test_bad_sources_of_blocks(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ks.blocks(tmp_path / "missing.npy")
    with pytest.raises(ValueError, match=r"holds no \.npy, \.npz or \.parquet file"):
        ks.blocks(tmp_path)
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"a\.csv"):
        ks.blocks(tmp_path / "a.csv")
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    with pytest.raises(ValueError, match="same columns"):
        ks.blocks([tmp_path / "a.npy", tmp_path / "b.npy"])
    with pytest.raises(TypeError, match="source must be"):
        ks.blocks(3)


def test_a_time_limit_holds_between_blocks(rng, monkeypatch):
    clock = [0.0]

    class Slow(Own):
        def __getitem__(self, rows):
            clock[0] += 0.05
            return super().__getitem__(rows)

    A = rng.standard_normal((400, 10))
    loss = ks.LeastSquares(Blocks(Slow(A), 100), A @ np.ones(10))
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    clock[0] = 0.0
    found = ks.minimize(loss, 3, method="apdca", max_time=0.1)
    assert found.status is ks.Status.TIME_LIMIT
    assert found.elapsed < 2.0  # without the limit: 46 s
    assert found.support.size <= 3


def test_what_is_no_matrix_or_no_height(rng):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    A = rng.standard_normal((20, 4))
    with pytest.raises(ValueError, match="A must have 2 axes"):
        ks.LeastSquares(da.from_array(A)[:, 0], np.ones(20))
    with pytest.raises(ValueError, match="source must have 2 axes"):
        ks.blocks(A[:, 0])
    for height in (0, -5, 2.5):
        with pytest.raises((ValueError, TypeError), match="height must be an integer >= 1"):
            ks.blocks(A, height)
    weighted = ks.SparseRegressor(2).fit(da.from_array(A), A[:, 0] - A[:, 2], sample_weight=da.ones(20))
    assert list(np.flatnonzero(weighted.coef_)) == [0, 2]


def test_data_less_a_few_directions_are_those_of_numpy(rng):
    A = rng.standard_normal((30, 8)) * (rng.random((30, 8)) < 0.5)
    mean, w = A.mean(axis=0), rng.uniform(0, 2, 30)
    u, v = rng.standard_normal((2, 30)), np.zeros((2, 8))
    v[0, [1, 4]], v[1, [4, 6]] = [0.6, 0.8], [1.0, -2.0]
    plain = A - mean - np.outer(u[0], v[0]) - np.outer(u[1], v[1])
    for design in (
        data_package.design_of(scipy.sparse.csr_array(A)).shifted(mean, np.ones(8)),
        data_package.Dense(A - mean),
    ):
        once = data_package.design_of(design.minus_outer(u[0], v[0]))
        less = data_package.design_of(once.minus_outer(u[1], v[1]))
        X, R, S = rng.standard_normal((8, 2)), rng.standard_normal((30, 2)), np.array([0, 4, 6])
        for found, twin in (
            (less @ X, plain @ X), (less.adjoint_product(R), plain.T @ R), (less.columns(S), plain[:, S]),
            (less.dense(), plain), (less.column_square_sums(None), (plain**2).sum(axis=0)),
            (less.column_square_sums(w), w @ plain**2), (less.gram(S, None), plain[:, S].T @ plain),
            (less.gram(S, w), plain[:, S].T @ (w[:, None] * plain)),
        ):  # fmt: skip
            np.testing.assert_allclose(found, twin, rtol=1e-10, atol=1e-12)


@pytest.mark.needs("torch")
def test_blocks_on_a_device_are_multiplied_there(rng, tmp_path, monkeypatch):
    """The host receives sums, products and columns of dask's tensor blocks, never a block."""
    from ksparse.data import dask
    from ksparse.data import design as designs

    sizes, to_numpy = [], dask.to_numpy
    for module in (dask, designs):
        monkeypatch.setattr(module, "to_numpy", lambda x: (sizes.append(tuple(x.shape)), to_numpy(x))[1])
    design = dask_of_torch(rng.standard_normal((M, N)), tmp_path)
    mean, root = design.moments(np.full(M, 1.0 / M), centre=True)
    for one in (design, design.shifted(mean, root).with_ones()):
        x, r = rng.standard_normal(one.shape[1]), rng.standard_normal(M)
        (
            one @ x,
            one.T @ r,
            one.column_square_sums(r * r),
            one.gram(np.array([3, 5]), r * r),
            one.columns(np.array([1, 2])),
        )
    assert sizes
    assert max(np.prod(size) for size in sizes) <= 2 * (N + 1)
