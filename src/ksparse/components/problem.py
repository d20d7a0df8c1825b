"""Several sparse components: each the best k-sparse direction of what the ones before have left."""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksparse.data import design_of
from ksparse.data.derived import Deflated, standardize
from ksparse.losses import PrincipalComponent
from ksparse.result import Result
from ksparse.sets import ConvexSet, L2Ball, NonnegativeBall
from ksparse.solve.judge import interrupted, restated
from ksparse.solve.minimize import minimize, one_search
from ksparse.util.arrays import Matrix, Vector, to_float64
from ksparse.util.checks import SMALLEST, check_integer, check_matrix
from ksparse.util.progress import track

NOTHING = 1e-16  # of the variance: what projection leaves is rounding
CANCELLED = 1e-14  # of the largest variance of a column: what Hotelling's difference leaves is rounding
DEFLATIONS = ("projection", "hotelling", "orthogonal")


@dataclass(frozen=True)
class Components:
    """The directions, one per row, each of unit length with at most k nonzeros."""

    loadings: Vector
    variance: Vector  # that each adds to the ones before: what they share is counted once
    total: float  # the variance of the data
    results: list[Result]
    mean: Vector  # of the columns
    deviation: Vector  # their standard deviations, 0 of what is constant


def sparse_components(
    X: Any,
    k: int | Iterable[int],
    n_components: int = 1,
    *,
    scale: bool = True,
    nonnegative: bool = False,
    deflation: str = "projection",
    max_time: float | None = None,
    **options: Any,
) -> Components:
    """The first sparse principal components of a table (one row per sample); the covariance is never formed for wide tables.

    X : dense, or scipy.sparse, which stays so: its columns are centred as they are read.
    k : the nonzeros of each component, one number or one per component. scale : standardise the columns (correlations).
    nonnegative : no loading below 0. deflation : how a component v is taken out of V before the next: "projection"
    (I − vvᵀ)V(I − vvᵀ), "orthogonal" the same with the part of v that is orthogonal to the earlier ones, "hotelling" V − (vᵀVv)vvᵀ.
    max_time : seconds for all. options : as in `minimize`. There are fewer components where the variance is used up, or the search is
    cut short.
    """
    began = time.perf_counter()
    if deflation not in DEFLATIONS:
        raise ValueError(f"deflation must be one of {', '.join(DEFLATIONS)}, got {deflation!r}")
    X = to_float64(check_matrix(X, "X"))
    n_components = check_integer(n_components, "n_components", 1, min(X.shape))
    sizes = check_sizes(k, n_components, X.shape[1])
    around, mean = standardize(X, "X", scale=False)
    deviation = np.sqrt(design_of(around).squares(None))
    Z, unit = _in_units(standardize(X, "X", scale=True)[0] if scale else around)
    rest = _Hotelling(Z) if deflation == "hotelling" else _Projected(Z, orthogonal=deflation == "orthogonal")
    C: ConvexSet = NonnegativeBall() if nonnegative else L2Ball()
    results: list[Result] = []
    options = one_search(options)
    for size in track(sizes, "components"):
        try:
            if results:
                rest.take(np.asarray(results[-1].x))
                if rest.empty:
                    break
            results.append(rest.best(size, C, None if max_time is None else began + max_time, options))
        except KeyboardInterrupt:
            if not results:
                raise
            results[-1] = interrupted(results[-1])
        if not results[-1].status.good:
            break
    loadings = np.array([result.x for result in results])
    results = [restated(result, unit**2 * result.fun, lambda value: unit**2 * value) for result in results]
    total = unit**2 * float(design_of(Z).squares(None).sum())
    return Components(loadings, unit**2 * adjusted_variance(Z, loadings), total, results, np.asarray(mean), deviation)


def _in_units(Z: Matrix) -> tuple[Matrix, float]:
    """Z of a size near 1, and what it was divided by: a power of 2, which rounds nothing."""
    design = design_of(Z)
    largest = design.magnitude()
    if 0.0 < largest < SMALLEST:
        raise ValueError(
            f"X must vary by at least {SMALLEST:g}, it varies by {largest:g}: rescale the data, or set scale=True"
        )
    unit = 1.0 if largest == 0.0 else 2.0 ** np.floor(np.log2(largest))
    return design.shifted(np.zeros(design.shape[1]), np.full(design.shape[1], unit)), unit


def check_sizes(k: Any, n_components: int, n: int) -> list[int]:
    """The nonzeros of each component, from one number or one per component."""
    if isinstance(k, numbers.Number | str) or not isinstance(k, Iterable):
        return [check_integer(k, "k", 1, n)] * n_components
    sizes = [check_integer(size, "k", 1, n) for size in k]
    if len(sizes) != n_components:
        raise ValueError(f"k must be one number or {n_components}, one per component, got {len(sizes)}")
    return sizes


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.perf_counter())


class _Projected:
    """What is left of V = ZᵀZ after projections, by its factor Z."""

    def __init__(self, Z: Matrix, *, orthogonal: bool) -> None:
        self.Z, self.orthogonal = Z, orthogonal
        self.total = float(design_of(Z).squares(None).sum())
        self.basis = np.zeros((0, Z.shape[1]))  # orthonormal, of the components taken

    @property
    def empty(self) -> bool:
        """Whether nothing but rounding is left."""
        return float(design_of(self.Z).squares(None).max()) <= NOTHING * self.total

    def best(self, k: int, C: ConvexSet, deadline: float | None, options: dict[str, Any]) -> Result:
        """The best component of what is left."""
        return minimize(PrincipalComponent.from_factor(self.Z), k, C, max_time=_left(deadline), **options)

    def take(self, v: Vector) -> None:
        """Take a component out."""
        q = v
        if self.orthogonal:
            q = v - self.basis.T @ (self.basis @ v)
            q = q - self.basis.T @ (self.basis @ q)  # once more: the first leaves rounding
            length = float(np.linalg.norm(q))
            if length <= 1e-8:
                return
            q = q / length
            self.basis = np.vstack([self.basis, q])
        self.Z = design_of(self.Z).less(self.Z @ q, q)


class _Hotelling:
    """What is left of V after Hotelling's deflations, V − Σ λᵢvᵢvᵢᵀ, by its products."""

    def __init__(self, Z: Matrix) -> None:
        self.Z = design_of(Z)
        self.size = float(self.Z.squares(None).max())
        self.left = Deflated(self.Z, np.zeros(0), np.zeros((0, Z.shape[1])))

    @property
    def empty(self) -> bool:
        """Whether nothing but rounding is left. V is then not definite: where a diagonal entry is left, so is variance."""
        return float(self.left.diagonal().max()) <= CANCELLED * self.size

    def best(self, k: int, C: ConvexSet, deadline: float | None, options: dict[str, Any]) -> Result:
        """The best component of what is left."""
        loss = PrincipalComponent(self.left) if self.left.values.size else PrincipalComponent.from_factor(self.Z.given)
        return minimize(loss, k, C, max_time=_left(deadline), **options)

    def take(self, v: Vector) -> None:
        """Take a component out."""
        value = float(v @ (self.left @ v))
        self.left = Deflated(self.Z, np.append(self.left.values, value), np.vstack([self.left.taken, v]))


def adjusted_variance(Z: Matrix, loadings: Vector) -> Vector:
    """The variance of each component's scores that the components before it do not explain (Zou, Hastie and Tibshirani 2006)."""
    R = np.linalg.qr(Z @ loadings.T, mode="r")
    return np.asarray(np.square(np.diag(R)))
