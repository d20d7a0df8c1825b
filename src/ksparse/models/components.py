"""Several sparse components: each the best k-sparse direction of what the ones before have left."""

from __future__ import annotations

import numbers
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ksparse.base.arrays import Vector
from ksparse.base.checks import SMALLEST, check_array, check_integer
from ksparse.linalg.standardize import standardize
from ksparse.losses import PrincipalComponent
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet, L2Ball, NonnegativeBall
from ksparse.solve.by_search import one_search
from ksparse.solve.judge import interrupted, restated
from ksparse.solve.minimize import minimize

Matrix = np.ndarray[Any, Any]
NOTHING = 1e-16  # of the variance: what projection leaves is rounding
CANCELLED = 1e-14  # of the largest variance of a column: what Hotelling's difference leaves is rounding
DEFLATIONS = ("projection", "hotelling", "orthogonal")
FORMED = 2_000  # up to so many columns Hotelling's matrix is formed


@dataclass(frozen=True)
class Components:
    """The directions, one per row, each of unit length with at most k nonzeros."""

    loadings: Matrix
    variance: np.ndarray[Any, Any]  # that each adds to the ones before: what they share is counted once
    total: float  # the variance of the data
    results: list[Result]


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

    k : the nonzeros of each component, one number or one per component. scale : standardise the columns (correlations).
    nonnegative : no loading below 0. deflation : how a component v is taken out of V before the next: "projection"
    (I − vvᵀ)V(I − vvᵀ), "orthogonal" the same with the part of v that is orthogonal to the earlier ones, "hotelling" V − (vᵀVv)vvᵀ.
    max_time : seconds for all. options : as in `minimize`. There are fewer components where the variance is used up, or the search is
    cut short.
    """
    began = time.perf_counter()
    if deflation not in DEFLATIONS:
        raise ValueError(f"deflation must be one of {', '.join(DEFLATIONS)}, got {deflation!r}")
    X = np.asarray(check_array(X, "X", 2), dtype=float)
    n_components = check_integer(n_components, "n_components", 1, min(X.shape))
    sizes = check_sizes(k, n_components, X.shape[1])
    Z, unit = _in_units(np.asarray(standardize(X, "X", scale=scale)[0]))
    rest = _hotelling(Z) if deflation == "hotelling" else _Projected(Z, orthogonal=deflation == "orthogonal")
    C: ConvexSet = NonnegativeBall() if nonnegative else L2Ball()
    results: list[Result] = []
    options = one_search(options)
    for size in sizes:
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
    return Components(loadings, unit**2 * adjusted_variance(Z, loadings), unit**2 * float(np.sum(np.square(Z))), results)


def _in_units(Z: Matrix) -> tuple[Matrix, float]:
    """Z of a size near 1, and what it was divided by: a power of 2, which rounds nothing."""
    largest = float(np.abs(Z).max())
    if 0.0 < largest < SMALLEST:
        raise ValueError(f"X must vary by at least {SMALLEST:g}, it varies by {largest:g}: use other units, or scale=True")
    unit = 1.0 if largest == 0.0 else 2.0 ** np.floor(np.log2(largest))
    return Z / unit, unit


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
        self.total = float(np.sum(np.square(Z)))
        self.basis = np.zeros((0, Z.shape[1]))  # orthonormal, of the components taken

    @property
    def empty(self) -> bool:
        """Whether nothing but rounding is left."""
        return float(np.sum(np.square(self.Z), axis=0).max()) <= NOTHING * self.total

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
        self.Z = self.Z - np.outer(self.Z @ q, q)


class _Formed:
    """What is left of V after Hotelling's deflations, V − Σ λᵢvᵢvᵢᵀ, as a matrix: for few columns."""

    def __init__(self, Z: Matrix) -> None:
        self.Z, self.V = Z, np.zeros((0, 0))  # formed where a component is taken out
        self.size = float(np.sum(np.square(Z), axis=0).max())

    @property
    def empty(self) -> bool:
        """Whether nothing but rounding is left. V is then not definite: where a diagonal entry is left, so is variance."""
        return float(np.diag(self.V).max()) <= CANCELLED * self.size

    def best(self, k: int, C: ConvexSet, deadline: float | None, options: dict[str, Any]) -> Result:
        """The best component of what is left."""
        loss = PrincipalComponent(self.V) if self.V.size else PrincipalComponent.from_factor(self.Z)
        return minimize(loss, k, C, max_time=_left(deadline), **options)

    def take(self, v: Vector) -> None:
        """Take a component out."""
        if not self.V.size:
            self.V = self.Z.T @ self.Z
        self.V = self.V - float(v @ self.V @ v) * np.outer(v, v)


class _Lifted:
    """What is left of V after Hotelling's deflations where V is too large to form.

    It is not definite and has no factor. On the sphere, where the best components lie, adding σI changes nothing but the value, and
    ZᵀZ + Σ λᵢ(Iᵢ − vᵢvᵢᵀ) + D has a factor of few nonzeros beside Z: Iᵢ is the identity on the support of vᵢ, and D the diagonal
    that makes Σ λᵢIᵢ + D = σI. The lift slows power iterations from random starts; the best component after projections is another start.
    """

    def __init__(self, Z: Matrix) -> None:
        self.Z = Z
        self.projected = _Projected(Z, orthogonal=False)
        self.diagonal = np.sum(np.square(Z), axis=0)
        self.size = float(self.diagonal.max())
        self.values: list[float] = []  # λᵢ
        self.taken: list[Vector] = []  # vᵢ

    @property
    def empty(self) -> bool:
        """Whether nothing but rounding is left."""
        return float(self.diagonal.max()) <= CANCELLED * self.size

    def variance(self, x: Vector) -> float:
        """What is left along x."""
        image = self.Z @ x
        return float(image @ image) - sum(value * float(v @ x) ** 2 for value, v in zip(self.values, self.taken, strict=True))

    def best(self, k: int, C: ConvexSet, deadline: float | None, options: dict[str, Any]) -> Result:
        """The best component of what is left."""
        quiet = {name: value for name, value in options.items() if name not in ("callback", "verbose")}
        if not self.taken:
            return self.projected.best(k, C, deadline, options)
        start = self.projected.best(k, C, deadline, quiet)
        if start.status is Status.INTERRUPTED:
            return restated(start, -self.variance(start.x), lambda value: value)
        factor, lift = self.factor()
        found = minimize(PrincipalComponent.from_factor(factor), k, C, max_time=_left(deadline), **({"x0": start.x} | options))
        return restated(found, -self.variance(found.x), lambda value: value + lift)

    def factor(self) -> tuple[Any, float]:
        """F with FᵀF = V − Σ λᵢvᵢvᵢᵀ + σI, and σ."""
        covered = np.zeros(self.Z.shape[1])
        for value, v in zip(self.values, self.taken, strict=True):
            covered[_members(v)] += value
        lift = float(covered.max())
        blocks = [np.sqrt(value) * complement(v) for value, v in zip(self.values, self.taken, strict=True)]
        return scipy.sparse.vstack([self.Z, *blocks, scipy.sparse.diags_array(np.sqrt(lift - covered))], format="csc"), lift

    def take(self, v: Vector) -> None:
        """Take a component out."""
        value = self.variance(v)
        self.values.append(value)
        self.taken.append(v)
        self.diagonal = self.diagonal - value * np.square(v)
        self.projected.take(v)


def _hotelling(Z: Matrix) -> _Formed | _Lifted:
    return _Formed(Z) if Z.shape[1] <= FORMED else _Lifted(Z)


def _members(v: Vector) -> Vector:
    return np.flatnonzero(np.abs(v) > 1e-150)  # the square of anything smaller is nothing


def complement(v: Vector) -> Any:
    """Sparse orthonormal rows that span what is orthogonal to v within its support: Haar wavelets fitted to v, k log k nonzeros."""
    rows: list[tuple[Vector, Vector]] = []
    parts = [_members(v)]
    while parts:
        part = parts.pop()
        if part.size > 1:
            halves = np.array_split(part, 2)
            first, second = (float(np.linalg.norm(v[half])) for half in halves)
            entries = np.concatenate([v[halves[0]] * (second / first), -v[halves[1]] * (first / second)]) / np.hypot(first, second)
            rows.append((part, entries))
            parts += halves
    ends = np.cumsum([0, *(part.size for part, _ in rows)])
    columns, entries = ([np.concatenate(side) for side in zip(*rows, strict=True)]) if rows else (np.zeros(0, dtype=int), np.zeros(0))
    return scipy.sparse.csr_array((entries, columns, ends), shape=(len(rows), v.size))


def adjusted_variance(Z: Matrix, loadings: Matrix) -> np.ndarray[Any, Any]:
    """The variance of each component's scores that the components before it do not explain (Zou, Hastie and Tibshirani 2006)."""
    R = np.linalg.qr(Z @ loadings.T, mode="r")
    return np.asarray(np.square(np.diag(R)))
