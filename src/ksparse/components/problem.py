"""Sparse principal components, computed one after the other on the deflated data."""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.data import design_of
from ksparse.data.derived import Deflated, standardize
from ksparse.losses import PrincipalComponent
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet, L2Ball, NonnegativeBall
from ksparse.solve.judge import in_other_units
from ksparse.solve.minimize import minimize, one_search
from ksparse.util.arrays import Matrix, Vector, to_float64
from ksparse.util.checks import SMALLEST, check_choice, check_integer, check_matrix
from ksparse.util.progress import track

NO_VARIANCE = 1e-16  # fraction of the total variance: the rounding left by projections
NO_DIAGONAL = 1e-14  # fraction of the largest variance of a column: the rounding left by Hotelling's deflation
DEFLATIONS = ("projection", "hotelling", "orthogonal")


@dataclass(frozen=True)
class Components:
    """Sparse directions, one per row, each of unit length with at most k nonzeros."""

    loadings: Vector
    variance: Vector  # of the scores, without what earlier components explain
    total: float  # variance of the data
    results: list[Result]
    mean: Vector  # of the columns
    deviation: Vector  # standard deviations of the columns, 0 if constant


def sparse_components(
    X: Any, k: int | Iterable[int], n_components: int = 1, *, scale: bool = True, nonnegative: bool = False,
    deflation: str = "projection", max_time: float | None = None, **options: Any,
) -> Components:  # fmt: skip
    """Return the first sparse principal components of a table; the covariance of wide tables is never formed.

    X : dense, or scipy.sparse, whose columns are centred as they are read.
    k : the nonzeros of each component, one number or one per component. scale : standardise the columns (correlations).
    nonnegative : no loading below 0. max_time : seconds in total. options : those of `minimize`.
    deflation : how a component v is removed from V before the next: "projection" (I − vvᵀ)V(I − vvᵀ); "orthogonal",
    the same with the part of v orthogonal to the earlier ones; "hotelling" V − (vᵀVv)vvᵀ.

    There are fewer components if no variance is left, or if the search is stopped.
    """
    began = time.perf_counter()
    check_choice(deflation, "deflation", DEFLATIONS)
    X = to_float64(check_matrix(X, "X"))
    n_components = check_integer(n_components, "n_components", 1, min(X.shape))
    sizes = _sizes(k, n_components, X.shape[1])
    centred, mean = standardize(X, "X", scale=False)
    deviation = np.sqrt(design_of(centred).column_square_sums(None))
    Z, unit = _in_units(standardize(X, "X", scale=True)[0] if scale else centred)
    rest = _Hotelling(Z) if deflation == "hotelling" else _Projected(Z, orthogonal=deflation == "orthogonal")
    C: ConvexSet = NonnegativeBall() if nonnegative else L2Ball()
    results: list[Result] = []
    options = one_search(options)
    for size in track(sizes, "components"):
        try:
            if results:
                rest.remove(np.asarray(results[-1].x))
                if rest.is_empty:
                    break
            left = None if max_time is None else max(0.0, began + max_time - time.perf_counter())
            results.append(minimize(rest.loss(), size, C, max_time=left, **options))
        except KeyboardInterrupt:
            if not results:
                raise
            status = Status.INTERRUPTED
            results[-1] = replace(results[-1], status=status, message=status.message, success=False)
        if not results[-1].status.good:
            break
    loadings = np.array([result.x for result in results])
    results = [in_other_units(result, unit**2 * result.fun, lambda value: unit**2 * value) for result in results]
    total = unit**2 * float(design_of(Z).column_square_sums(None).sum())
    return Components(loadings, unit**2 * adjusted_variance(Z, loadings), total, results, np.asarray(mean), deviation)


def _in_units(Z: Matrix) -> tuple[Matrix, float]:
    """Return Z divided by a power of two near its largest entry, and that divisor; the division is exact."""
    design = design_of(Z)
    largest = design.magnitude_scale()
    if 0.0 < largest < SMALLEST:
        raise ValueError(f"X must vary by at least {SMALLEST:g}, not {largest:g}: rescale the data, or set scale=True")
    unit = 1.0 if largest == 0.0 else 2.0 ** np.floor(np.log2(largest))
    return design.shifted(np.zeros(design.shape[1]), np.full(design.shape[1], unit)), unit


def _sizes(k: Any, n_components: int, n: int) -> list[int]:
    """Return the number of nonzeros of each component."""
    if isinstance(k, numbers.Number | str) or not isinstance(k, Iterable):
        k = [k] * n_components
    sizes = [check_integer(size, "k", 1, n) for size in k]
    if len(sizes) != n_components:
        raise ValueError(f"k must be one number or {n_components}, one per component, got {len(sizes)}")
    return sizes


class _Projected:
    """Deflation of V = ZᵀZ by projections of its factor Z."""

    def __init__(self, Z: Matrix, *, orthogonal: bool) -> None:
        self.Z, self.orthogonal = Z, orthogonal
        self.total = float(design_of(Z).column_square_sums(None).sum())
        self.basis = np.zeros((0, Z.shape[1]))  # orthonormal basis of the removed components

    @property
    def is_empty(self) -> bool:
        """Whether only rounding is left."""
        return float(design_of(self.Z).column_square_sums(None).max()) <= NO_VARIANCE * self.total

    def loss(self) -> PrincipalComponent:
        """Return the loss of the next component."""
        return PrincipalComponent.from_factor(self.Z)

    def remove(self, v: Vector) -> None:
        """Remove a component."""
        q = v
        if self.orthogonal:
            q = v - self.basis.T @ (self.basis @ v)
            q = q - self.basis.T @ (self.basis @ q)  # twice, since the first leaves rounding
            length = float(np.linalg.norm(q))
            if length <= 1e-8:
                return
            q = q / length
            self.basis = np.vstack([self.basis, q])
        self.Z = design_of(self.Z).minus_outer(self.Z @ q, q)


class _Hotelling:
    """Hotelling's deflation V − Σ λᵢvᵢvᵢᵀ, by its products."""

    def __init__(self, Z: Matrix) -> None:
        self.Z = design_of(Z)
        self.largest = float(self.Z.column_square_sums(None).max())
        self.rest = Deflated(self.Z, np.zeros(0), np.zeros((0, Z.shape[1])))

    @property
    def is_empty(self) -> bool:
        """Whether only rounding is left on the diagonal (the deflated matrix need not be positive semidefinite)."""
        return float(self.rest.diagonal().max()) <= NO_DIAGONAL * self.largest

    def loss(self) -> PrincipalComponent:
        """Return the loss of the next component."""
        if self.rest.values.size:
            return PrincipalComponent(self.rest)
        return PrincipalComponent.from_factor(self.Z.unwrapped)

    def remove(self, v: Vector) -> None:
        """Remove a component."""
        value = float(v @ (self.rest @ v))
        self.rest = Deflated(self.Z, np.append(self.rest.values, value), np.vstack([self.rest.taken, v]))


def adjusted_variance(Z: Matrix, loadings: Vector) -> Vector:
    """Return the variance of the scores of each component that earlier components do not explain (Zou et al. 2006)."""
    return np.asarray(np.square(np.diag(np.linalg.qr(Z @ loadings.T, mode="r"))))
