"""Several sparse components: each the best k-sparse direction of what the ones before have left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.checks import check_array, check_integer
from ksparse.losses import Loss, PrincipalComponent
from ksparse.losses.standardize import standardize
from ksparse.minimize import minimize
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet, L2Ball, NonnegativeBall

Matrix = np.ndarray[Any, Any]
NOTHING = 1e-16  # of the variance: what deflation leaves is rounding
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
    k: int | Sequence[int],
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
    if deflation not in DEFLATIONS:
        raise ValueError(f"deflation must be one of {', '.join(DEFLATIONS)}, got {deflation!r}")
    X = np.asarray(check_array(X, "X", 2), dtype=float)
    n_components = check_integer(n_components, "n_components", 1, min(X.shape))
    sizes = [int(k)] * n_components if isinstance(k, int | np.integer) else list(k)
    if len(sizes) != n_components:
        raise ValueError(f"k must be one number or {n_components}, one per component, got {len(sizes)}")
    Z = np.asarray(standardize(X, "X", scale=scale)[0])
    rest, began = _Rest(Z, deflation), time.perf_counter()
    C: ConvexSet = NonnegativeBall() if nonnegative else L2Ball()
    results: list[Result] = []
    for size in sizes:
        if results and rest.empty:
            break
        try:
            left = None if max_time is None else max(0.0, max_time - (time.perf_counter() - began))
            results.append(minimize(rest.loss(), size, C, max_time=left, **options))
            rest.take(np.asarray(results[-1].x))
        except KeyboardInterrupt:
            if not results:
                raise
            results[-1] = replace(results[-1], status=Status.INTERRUPTED, message=Status.INTERRUPTED.message, success=False)
        if not results[-1].status.good:
            break
    loadings = np.array([result.x for result in results])
    return Components(loadings, adjusted_variance(Z, loadings), float(np.sum(np.square(Z))), results)


class _Rest:
    """What is left of V = ZᵀZ."""

    def __init__(self, Z: Matrix, deflation: str) -> None:
        self.Z, self.deflation = Z, deflation
        self.total = float(np.sum(np.square(Z)))
        self.basis = np.zeros((0, Z.shape[1]))  # orthonormal, of the components taken
        self.taken: list[tuple[float, np.ndarray[Any, Any]]] = []  # Hotelling's vᵀVv and v

    @property
    def empty(self) -> bool:
        """Whether nothing but rounding is left."""
        left = np.sum(np.square(self.Z), axis=0) - sum((value * v**2 for value, v in self.taken), start=np.zeros(self.Z.shape[1]))
        return (
            float(left.max()) <= NOTHING * self.total
        )  # Hotelling's matrix is not definite: where a diagonal entry is left, so is variance

    def loss(self) -> Loss:
        """−xᵀVx for what is left."""
        if not self.taken:
            return PrincipalComponent.from_factor(self.Z)
        operator = Deflated(self.Z, np.array([value for value, _ in self.taken]), np.array([v for _, v in self.taken]))
        return PrincipalComponent(operator @ np.eye(self.Z.shape[1]) if self.Z.shape[1] <= FORMED else operator)

    def take(self, v: np.ndarray[Any, Any]) -> None:
        """Take a component out."""
        if self.deflation == "hotelling":
            image = self.Z @ v
            gone = sum(value * float(u @ v) ** 2 for value, u in self.taken)
            self.taken.append((float(image @ image) - gone, v))
            return
        q = v
        if self.deflation == "orthogonal":
            q = v - self.basis.T @ (self.basis @ v)
            q = q - self.basis.T @ (self.basis @ q)  # once more: the first leaves rounding
            length = float(np.linalg.norm(q))
            if length <= 1e-8:
                return
            q = q / length
            self.basis = np.vstack([self.basis, q])
        self.Z = self.Z - np.outer(self.Z @ q, q)


@dataclass(frozen=True)
class Deflated:
    """The operator ZᵀZ − Σ λᵢvᵢvᵢᵀ."""

    Z: Matrix
    values: np.ndarray[Any, Any]
    directions: Matrix  # one per row

    @property
    def shape(self) -> tuple[int, int]:
        return self.Z.shape[1], self.Z.shape[1]

    @property
    def dtype(self) -> Any:
        return self.Z.dtype

    @property
    def T(self) -> Deflated:
        return self

    def __matmul__(self, x: Matrix) -> Matrix:
        taken = self.values * (self.directions @ x) if x.ndim == 1 else self.values[:, None] * (self.directions @ x)
        return np.asarray(self.Z.T @ (self.Z @ x) - self.directions.T @ taken)


def adjusted_variance(Z: Matrix, loadings: Matrix) -> np.ndarray[Any, Any]:
    """The variance of each component's scores that the components before it do not explain (Zou, Hastie and Tibshirani 2006)."""
    R = np.linalg.qr(Z @ loadings.T, mode="r")
    return np.asarray(np.square(np.diag(R)))
