"""A dense array in memory, on the host or of another array library.

`both_products` computes Ax and AᵀDAx in one pass over A: each block of rows is used for both while it is in the cache.
Two products read A twice, and reading A is what a step costs. The loop is compiled, and applies to large dense NumPy
arrays with contiguous rows.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.data.design import CONSTANT, Design, Work, block_square_sums
from ksparse.util.arrays import Array, Vector, column_dots, copy_with, namespace, to_float64, to_numpy
from ksparse.util.checks import check_array
from ksparse.util.compiled import compiled
from ksparse.util.resources import all_threads, map_row_chunks

TILE = 256  # rows of a symmetric matrix that are compared with as many columns at a time
CACHED = 2**18  # numbers that stay in the processor's cache
LARGE_PRODUCT = 2**27  # multiplications from which a product of two matrices is split over threads
LARGE_ARRAY = 2**24  # bytes from which a product with a vector is split over threads
ONE_PASS_BYTES = 2**27  # bytes of A from which one pass is worth a second of compilation


class Dense(Design):
    """An array with two axes."""

    entries_in_memory = True

    def __init__(self, array: Array) -> None:
        self.array, self.shape = array, (int(array.shape[0]), int(array.shape[1]))
        self.dtype, self._count = array.dtype, [0]  # the dtype of its own library

    @property
    def unwrapped(self) -> Array:
        return self.array

    @property
    def kind(self) -> Array:
        return namespace(self.array).zeros(0, dtype=self.array.dtype, device=compat.device(self.array))

    def as_float64(self) -> Dense:
        """Return the data in double precision, copied if needed: large arrays are read by blocks, see `in_double`."""
        array = to_float64(self.array)
        return copy_with(self, array=array, dtype=array.dtype)

    def each(self, work: Work) -> list[Any]:
        """Return the work on one block, which has all rows."""
        self.record_pass()
        return [work(to_numpy(self.array), slice(0, self.shape[0]))]

    @property
    def _split(self) -> bool:
        """Whether a product with a vector is worth several threads."""
        return isinstance(self.array, np.ndarray) and self.array.nbytes >= LARGE_ARRAY

    def __matmul__(self, x: Any) -> Any:
        self.record_pass()
        if not self._split:
            return self.array @ x
        return np.concatenate(map_row_chunks(lambda rows: self.array[rows] @ x, self.shape[0]))

    def adjoint_product(self, r: Any) -> Any:
        self.record_pass()
        if not self._split:
            return self.array.T @ r
        return sum(map_row_chunks(lambda rows: self.array[rows].T @ r[rows], self.shape[0]))

    def column_square_sums(self, w: Vector | None) -> Vector:
        self.record_pass()
        A = to_numpy(self.array)
        if A.nbytes < LARGE_ARRAY:
            return np.asarray(_square_sums(A, w))
        rest = map_row_chunks(lambda rows: _square_sums(A[rows], None if w is None else w[rows]), A.shape[0])
        return np.asarray(sum(rest))

    def gram(self, support: Vector, w: Vector | None) -> Vector:
        self.record_pass()
        A, cut = to_numpy(self.array), to_numpy(self.columns(support))
        weighted = cut if w is None else w[:, None] * cut
        if weighted.size * A.shape[1] < LARGE_PRODUCT:
            return np.asarray(weighted.T @ A)
        if weighted is A and A.shape[0] >= A.shape[1]:  # BLAS computes one half of the product of A with itself
            return np.asarray(sum(map_row_chunks(lambda rows: A[rows].T @ A[rows], A.shape[0])))
        if weighted is A:  # the sum of several Gram matrices would take more memory than A
            with all_threads():
                return np.asarray(A.T @ A)
        return np.concatenate(map_row_chunks(lambda part: weighted.T @ A[:, part], A.shape[1]), axis=1)

    def columns(self, support: Vector) -> Array:
        """Return A[:, support]; the array itself if that is all, because its product with itself costs half."""
        if support.size == self.shape[1] and (support == np.arange(support.size)).all():
            return self.array
        xp = namespace(self.array)
        return xp.take(self.array, xp.asarray(support, device=compat.device(self.array)), axis=1)

    def dense(self) -> Vector:
        return to_numpy(self.array)

    def times(self, X: Vector) -> Vector:
        return np.asarray(X @ to_numpy(self.array).T)

    def adjoint_products(self, R: Vector) -> Vector:
        return np.asarray(R @ to_numpy(self.array))

    def diagonal(self) -> Vector:
        return np.diag(to_numpy(self.array))

    def asymmetry(self) -> tuple[float, float]:
        """Compare strips: a whole transpose would be read across its rows."""
        xp, Q, n = namespace(self.array), self.array, self.shape[0]
        strips = [slice(begin, min(begin + TILE, n)) for begin in range(0, n, TILE)]
        apart = xp.stack([xp.max(xp.abs(Q[strip, :] - Q[:, strip].T)) for strip in strips])
        return float(xp.max(apart)), float(xp.max(xp.abs(Q)))

    def magnitude_scale(self) -> float:
        return float(np.abs(to_numpy(self.array)).max(initial=0.0))

    def moments(self, share: Vector, centre: bool) -> tuple[Vector, Vector]:
        X = np.asarray(check_array(self.array, "X", 2))
        mean = share @ X.astype(float) if centre else np.zeros(X.shape[1])
        root = root_mean_square(X - mean, share)
        return mean, np.where(root <= CONSTANT * np.finfo(X.dtype).eps * np.abs(mean), 0.0, root)

    def shifted(self, mean: Vector, size: Vector) -> Vector:
        """Return a copy: made once, it costs less than the same in every product."""
        return np.asarray((to_numpy(self.array) - mean) / size)

    def minus_outer(self, u: Vector, v: Vector) -> Vector:
        return np.asarray(to_numpy(self.array) - np.outer(u, v))

    def with_ones(self) -> Vector:
        return np.hstack([to_numpy(self.array), np.ones((self.shape[0], 1))])

    def __getitem__(self, chosen: Any) -> Any:
        return self.array[chosen]


def _square_sums(A: Vector, w: Vector | None) -> Array:
    """Return Σᵢ wᵢaᵢⱼ² for each column; weighted squares of contiguous rows in chunks that fit the cache."""
    if w is None:
        return column_dots(A, A)
    if A.dtype != np.float64 or not A.flags.c_contiguous:
        return block_square_sums(A, w)
    total, step = np.zeros(A.shape[1]), max(1, CACHED // max(1, A.shape[1]))
    for begin in range(0, A.shape[0], step):
        total += w[begin : begin + step] @ np.square(A[begin : begin + step])
    return total


def root_mean_square(Z: Vector, share: Vector) -> Vector:
    """Return the weighted root mean square of each column, without overflow or underflow of the squares."""
    top = np.abs(Z).max(axis=0)
    return np.asarray(top * np.sqrt(share @ np.square(Z / np.where(top > 0, top, 1.0))))


def fits_one_pass(A: Any) -> bool:
    """Return whether `both_products` can be used for a matrix, and pays."""
    large = isinstance(A, np.ndarray) and A.nbytes >= ONE_PASS_BYTES
    return large and A.dtype in (np.float32, np.float64) and bool(A.flags.c_contiguous)


def both_products(A: Vector, weight: Vector | None, x: Vector) -> Vector:
    """Return [Ax; AᵀDAx], D = diag(weight): one array, because it is linear in x as a whole."""
    m, n = A.shape
    y = np.empty(m + n, dtype=A.dtype)
    x, weight = np.ascontiguousarray(x, dtype=A.dtype), np.ones(m, dtype=A.dtype) if weight is None else weight
    kernel = compiled(_rows)

    def part(rows: slice) -> Vector:
        g = np.empty(n, dtype=A.dtype)
        kernel(A, weight, x, rows.start, rows.stop, y, g)
        return g

    y[m:] = sum(map_row_chunks(part, m))
    return y


def _rows(A: Any, w: Any, x: Any, begin: int, end: int, y: Any, g: Any) -> None:
    """Compute y = Ax on the rows begin…end, and their part g of AᵀDAx: x and g are read once for six rows."""
    n = A.shape[1]
    for j in range(n):
        g[j] = 0.0
    i = begin
    while i + 6 <= end:
        a, b, c, d, e, f = A[i], A[i + 1], A[i + 2], A[i + 3], A[i + 4], A[i + 5]
        y0 = y1 = y2 = y3 = y4 = y5 = A[i, 0] * 0
        for j in range(n):
            v = x[j]
            y0 += a[j] * v
            y1 += b[j] * v
            y2 += c[j] * v
            y3 += d[j] * v
            y4 += e[j] * v
            y5 += f[j] * v
        y[i], y[i + 1], y[i + 2], y[i + 3], y[i + 4], y[i + 5] = y0, y1, y2, y3, y4, y5
        y0, y1, y2, y3, y4, y5 = w[i] * y0, w[i + 1] * y1, w[i + 2] * y2, w[i + 3] * y3, w[i + 4] * y4, w[i + 5] * y5
        for j in range(n):
            g[j] += y0 * a[j] + y1 * b[j] + y2 * c[j] + y3 * d[j] + y4 * e[j] + y5 * f[j]
        i += 6
    while i < end:
        y0 = A[i, 0] * 0
        for j in range(n):
            y0 += A[i, j] * x[j]
        y[i] = y0
        y0 = w[i] * y0
        for j in range(n):
            g[j] += y0 * A[i, j]
        i += 1
