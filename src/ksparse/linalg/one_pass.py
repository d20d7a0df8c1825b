"""Ax and AᵀDAx in one pass over A: each block of rows is used for both while it is in the cache.

Two products read A twice, and reading A is what a step costs. The loop is compiled by numba, and
applies to large dense NumPy arrays with contiguous rows. Everywhere else two products are the rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.base.threads import in_threads
from ksparse.linalg.compiled import compiled, compiler_is_there

LARGE = 2**27  # bytes of A from which a pass is worth the compiler's second


def applies(A: Any) -> bool:
    """Whether the one-pass form is there for this matrix."""
    return (
        isinstance(A, np.ndarray)
        and A.dtype in (np.float32, np.float64)
        and A.flags.c_contiguous
        and A.nbytes >= LARGE
        and compiler_is_there()
    )


def both_products(A: Vector, weight: Vector | None, x: Vector) -> Vector:
    """[Ax; AᵀDAx], D = diag(weight): one array, since it is linear in x as a whole."""
    m, n = A.shape
    y = np.empty(m + n, dtype=A.dtype)
    x, weight = np.ascontiguousarray(x, dtype=A.dtype), np.ones(m, dtype=A.dtype) if weight is None else weight
    kernel = compiled(_rows)

    def part(rows: slice) -> Vector:
        g = np.empty(n, dtype=A.dtype)
        kernel(A, weight, x, rows.start, rows.stop, y, g)
        return g

    y[m:] = sum(in_threads(part, m))
    return y


def _rows(A: Any, w: Any, x: Any, begin: int, end: int, y: Any, g: Any) -> None:
    """y = Ax on the rows begin…end, and g = AᵀDAx by them: six rows at a time, so that x and g are read once for six rows of A."""
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
