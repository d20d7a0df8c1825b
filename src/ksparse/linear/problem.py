"""Linear models as k-sparse problems: columns are centred and scaled for the search, the solution transformed back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.batch.paths import batched_k_paths
from ksparse.data import check_data, design_of, root_mean_square
from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.linear.loss_names import LossLike, check_loss, huber_with, make_loss, name_of
from ksparse.losses import Loss
from ksparse.result import Result, Status
from ksparse.sets import Box, ConvexSet, Nonnegative, Polyhedron, WholeSpace, require_length
from ksparse.solve.judge import uninterrupted
from ksparse.solve.many import Batch, minimize_many
from ksparse.solve.minimize import minimize
from ksparse.solve.path import k_path
from ksparse.util.arrays import Vector
from ksparse.util.checks import (
    check_array,
    check_bound,
    check_indices,
    check_integer,
    check_number,
    check_squares,
    check_vector,
)
from ksparse.util.progress import track
from ksparse.util.resources import one_thread

MIN_UNSCALED, MAX_UNSCALED = 1e-6, 1e6  # data of this size need no common scale
MAX_GRAM_ENTRIES = 2**24  # in all Gram matrices of a batch of paths
MAX_BATCHED_K = 64  # for larger k, updating a factorisation is faster than recomputing it


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model; several targets or classes have one row of coefficients and one intercept each."""

    coef: Vector
    intercept: Any
    result: Result  # of the search, in scaled variables


@dataclass(frozen=True)
class LinearProblem:
    """A linear model as a k-sparse problem on A = (X − mean)/scale, with ones for an intercept that is a variable."""

    loss: Loss
    C: ConvexSet
    n: int  # features
    intercept_is_variable: bool  # the last one: forced in, unbounded, not counted in k
    mean: Vector  # subtracted from the columns
    scale: Vector  # divisors of the columns
    target_mean: Any  # subtracted from the target: a number, or one per target
    target_scale: float  # divisor of the target, and so of the coefficients
    common_scale: float  # further divisor of both X and the target, which leaves the coefficients unchanged
    fit_intercept: bool
    lower: Vector  # exact bounds of the coefficients
    upper: Vector
    forced_in: Vector
    forced_out: Vector

    def minimize(self, k: int, **options: Any) -> LinearFit:
        """Return the best model with at most k features (or groups)."""
        if options.get("groups") is None:
            self._check_forced(check_integer(k, "k", 0, self.n))
        return self.fit_of(minimize(self.loss, int(k) + self.intercept_is_variable, self.C, **self._search(options)))

    def path(self, ks: Iterable[int], **options: Any) -> list[LinearFit]:
        """Return the best models for several k, ascending."""
        sizes = [check_integer(k, "ks", 1, self.n) + self.intercept_is_variable for k in ks]
        if options.get("groups") is None:
            self._check_forced(min(sizes) - self.intercept_is_variable)
        return [self.fit_of(result) for result in k_path(self.loss, sizes, self.C, **self._search(options)).results]

    def _check_forced(self, k: int) -> None:
        if self.forced_in.size > k:
            raise InfeasibleError(f"{self.forced_in.size} features are forced in, more than k = {k}")

    def _search(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with forced variables, if any, and with a label for an intercept that is a variable."""
        forced_in = self.forced_in
        if self.intercept_is_variable:
            forced_in, own = np.append(forced_in, self.n), ("intercept", self.n)
            if options.get("groups") is not None:
                options = options | {"groups": [*options["groups"], own]}
            if options.get("group_limits") is not None:
                labels, limits = options["group_limits"]
                options = options | {"group_limits": ([*labels, own], limits)}
        forced = {"forced_in": forced_in, "forced_out": self.forced_out}  # only supported with method="auto"
        return options | {name: indices for name, indices in forced.items() if indices.size}

    def fit_of(self, result: Result) -> LinearFit:
        """Return the model in the units of the data."""
        return LinearFit(*self.coefficients(np.asarray(result.x, dtype=float)), result)

    def coefficients(self, z: Vector) -> tuple[Vector, Any]:
        """Return coefficients and intercept in the units of the data from scaled ones."""
        width = self.loss.per_feature
        if width == 1:
            return self._coefficients(z, self.target_mean)
        columns = zip(z.reshape(-1, width).T, np.broadcast_to(self.target_mean, width), strict=True)
        fits = [self._coefficients(column, float(mean)) for column, mean in columns]
        return np.array([coef for coef, _ in fits]), np.array([intercept for _, intercept in fits])

    def _coefficients(self, z: Vector, target_mean: float) -> tuple[Vector, float]:
        # a scaled bound that is scaled back may miss the bound by rounding
        coef = np.clip(self.target_scale * z[: self.n] / self.scale, self.lower, self.upper)
        coef = np.where(z[: self.n] == 0, 0.0, coef)
        if not self.fit_intercept:
            return coef, 0.0
        own = self.target_scale * self.common_scale * float(z[self.n]) if self.intercept_is_variable else 0.0
        return coef, target_mean + own - float(self.mean @ coef)


def linear_problem(
    X: Any, y: Any, *, loss: LossLike = "squared", C: ConvexSet | None = None, lower: Any = -np.inf,
    upper: Any = np.inf, fit_intercept: bool = True, standardize: bool = True, alpha: float = 0.0,
    sample_weight: Any = None, forced_in: Any = (), forced_out: Any = (), free_intercept: bool = True,
    delta: float | None = None,
) -> LinearProblem:  # fmt: skip
    """Return the k-sparse problem of a linear model of y by the columns of X.

    y : one number per row; with the squared loss also several columns, which share their features, as the classes of
    "multinomial" do.
    loss : a name of `LOSSES`, or a class called as loss(A, b, sample_weight, ridge), which returns a `Loss` with one
    variable per column
        of A; its b is y unchanged. "logistic" expects 0 and 1, "multinomial" the numbers 0 to t − 1.
    delta : δ of the Huber loss, in the units of y; None for 1.345 robust standard deviations of y.
    C : a set for the coefficients, in the units of X. lower, upper : exact bounds, one number or one per column.
    standardize : scale the columns for the search, unless C is more than bounds. If the loss has a minimum on a
    support, scaling does not
        change it, only which supports are tried.
    free_intercept : whether the intercept may be a variable that is always in, which only method="auto" supports.
    alpha : ridge per unit of weight: adds ½ alpha Σ wᵢ ‖z‖², z the coefficients of the scaled columns, without the
    intercept.
    """
    check_loss(loss)
    X = check_data(X, "X")
    m, n = (int(side) for side in X.shape)
    several = np.ndim(y) == 2 and loss == "squared"
    y = np.asarray(_check_targets(y, m) if several else check_vector(y, "y", m, kind=np.zeros(0)), dtype=float)
    weight = None if sample_weight is None else np.asarray(check_vector(sample_weight, "sample_weight", m), dtype=float)
    low, high, rest = _split(C, _bound(lower, "lower", n), _bound(upper, "upper", n), n)
    centre = fit_intercept and design_of(X).can_centre
    how = "none" if rest is not None else "columns" if standardize else "all"
    A, mean, scale = scaled(X, weight, centre=centre, how=how)
    # with squares, the best intercept is the mean whatever the coefficients are
    closed_form = fit_intercept and loss == "squared" and (centre or not free_intercept)
    if fit_intercept and not closed_form and not free_intercept:
        raise MissingPieceError(f"with the {name_of(loss)} loss, fit_intercept=True requires method='auto'")
    if closed_form and not centre:  # centre with an operator, which keeps A sparse
        mean = np.asarray(X.T @ normalised_weights(m, weight)).ravel()
        A = design_of(X).shifted(mean, scale)
    target_mean: Any = np.average(y, axis=0, weights=weight) if closed_form else 0.0
    target_mean = target_mean if several else float(target_mean)
    target = y - target_mean
    target_scale, common_scale = _units(A, target, weight, loss, rest)
    A = A if common_scale == 1.0 else design_of(A).shifted(np.zeros(n), np.full(n, common_scale))
    intercept_is_variable = fit_intercept and not closed_form
    if intercept_is_variable:
        A = design_of(A).with_ones()
    target = target / target_scale / common_scale
    maker = loss
    if loss == "huber" and delta is not None:
        maker = huber_with(check_number(delta, "delta", above=0) / target_scale / common_scale)
    total = m if weight is None else float(weight.sum())
    unscaled = 1.0 if standardize and rest is None else float(scale[0]) * common_scale  # z of the original columns
    ridge: Any = check_number(alpha, "alpha", at_least=0) * total / unscaled / unscaled
    if ridge and intercept_is_variable:
        ridge = np.append(np.full(n, ridge), 0.0)
    made = make_loss(maker, A, target, weight, ridge)
    if rest is not None and made.per_feature > 1:
        raise MissingPieceError(f"C = {rest} is not supported for targets or classes that share features: use bounds")
    if rest is None:
        bounds = low * scale / target_scale, high * scale / target_scale
        C = _bounds_set(*bounds, intercept_is_variable, made.per_feature)
    else:
        C = _with_intercept(rest, n, loss) if intercept_is_variable else rest
    return LinearProblem(
        made, C, n, intercept_is_variable, mean, scale, target_mean, target_scale, common_scale, fit_intercept,
        low, high, check_indices(forced_in, "forced_in"), check_indices(forced_out, "forced_out"),
    )  # fmt: skip


def _units(
    A: Any, target: Vector, weight: Vector | None, loss: LossLike, rest: ConvexSet | None
) -> tuple[float, float]:
    """Return divisors of the target, and of both X and the target if C fixes the units of the coefficients."""
    if loss not in ("squared", "huber"):  # other losses are not known to scale
        return 1.0, 1.0
    if rest is None:
        columns = root_mean_square(target.reshape(len(target), -1), normalised_weights(len(target), weight))
        return float(columns[0] if columns.size == 1 else np.sqrt(np.mean(columns**2))) or 1.0, 1.0
    return 1.0, power_of_two(max(design_of(A).magnitude_scale(), float(np.abs(target).max())))


def _check_targets(Y: Any, m: int) -> Vector:
    given = np.asarray(check_array(Y, "y", 2), dtype=float)
    check_squares(given, "y")
    if len(given) != m:
        raise ValueError(f"y must have {m} rows, one for each of X, got {len(given)}")
    return given


def _bound(value: Any, name: str, n: int) -> Vector:
    bound = check_bound(value, name)
    bound = np.full(n, bound) if isinstance(bound, float) else check_vector(bound, name, n, allow_inf=True)
    return np.asarray(bound, dtype=float)


def _split(C: ConvexSet | None, low: Vector, high: Vector, n: int) -> tuple[Vector, Vector, ConvexSet | None]:
    """Return the bounds, and C if it is more than bounds; such a C cannot be combined with bounds."""
    rest = None
    if C is not None and not C.whole_space:
        require_length(C, n)
        linear = C.for_length(n).as_linear(n)
        if linear is not None and linear.f.size == linear.h.size == 0:
            low, high = np.maximum(low, linear.lower), np.minimum(high, linear.upper)
        elif np.isfinite(low).any() or np.isfinite(high).any():
            raise ValueError(f"bounds cannot be combined with C = {C}: put them into it, as a Polyhedron")
        else:
            rest = C
    if (low > high).any():
        j = int(np.argmax(low > high))
        raise ValueError(f"lower must not exceed upper, got {low[j]:g} > {high[j]:g} at index {j}")
    return low, high, rest


def _bounds_set(low: Vector, high: Vector, free: bool, width: int) -> ConvexSet:
    """Return bounds as a set, for `width` coefficients per feature and with a free last variable if `free`."""
    if free:
        low, high = np.append(low, -np.inf), np.append(high, np.inf)
    low, high = np.repeat(low, width), np.repeat(high, width)
    if not np.isposinf(high).all() or not np.isin(low, (0.0, -np.inf)).all():
        return Box(low, high)
    return Nonnegative(np.flatnonzero(low == 0.0)) if (low == 0.0).any() else WholeSpace()


def _with_intercept(C: ConvexSet, n: int, loss: LossLike) -> ConvexSet:
    """Return C with a free variable for the intercept."""
    linear = C.for_length(n).as_linear(n)
    if linear is None:
        intercept = f"an intercept with the {name_of(loss)} loss"
        advice = "use fit_intercept=False, or a polyhedral C"
        raise MissingPieceError(f"C = {C} cannot be combined with {intercept}: {advice}")
    G, E = (np.hstack([rows, np.zeros((len(rows), 1))]) for rows in (linear.G, linear.E))
    lower, upper = np.append(linear.lower, -np.inf), np.append(linear.upper, np.inf)
    return Polyhedron(G, linear.h, E, linear.f, lower=lower, upper=upper)


def scaled(X: Any, weight: Vector | None, *, centre: bool, how: str) -> tuple[Any, Vector, Vector]:
    """Return X with columns of root mean square 1, their means and their scales; sparse columns are not centred.

    how : "columns" scales each column; "all" divides by one number if the data are very small or large; "none". Without
    centring, a column with a mean far from 0 would be nearly parallel to the intercept. The rounding left of a constant
    column becomes 0.
    """
    design = design_of(X)
    mean, rms = design.moments(normalised_weights(X.shape[0], weight), centre)
    common = power_of_two(float(rms.max())) if how == "all" else 1.0
    scale = np.where(rms == 0, 1.0, rms) if how == "columns" else np.full(X.shape[1], common)
    return design.shifted(mean, np.where(rms == 0, np.inf, scale)), mean, scale


def normalised_weights(m: int, weight: Vector | None) -> Vector:
    """Return weights of the rows that sum to 1."""
    return np.full(m, 1.0 / m) if weight is None or not weight.sum() > 0 else weight / weight.sum()


def power_of_two(size: float) -> float:
    """Return 1 for data of ordinary size, else a power of two near `size`, by which division is exact."""
    ordinary = size == 0.0 or MIN_UNSCALED <= size <= MAX_UNSCALED
    return 1.0 if ordinary else float(2.0 ** np.floor(np.log2(size)))


@dataclass(frozen=True)
class ManyFits:
    """Models of several targets: one row of coefficients and one intercept each."""

    coef: Vector
    intercept: Vector
    results: Batch | list[Result]  # in scaled variables

    @property
    def failure(self) -> Status | None:
        """The first status, in the order of `Status`, that is not good; None if all are."""
        statuses = self.results.status if isinstance(self.results, Batch) else [r.status for r in self.results]
        return next((status for status in Status if not status.good and status in statuses), None)


def can_batch_targets(problem: LinearProblem) -> bool:
    """Return whether targets can share one Gram matrix: least squares, closed-form intercept, no bounds but signs."""
    linear = None if problem.intercept_is_variable else problem.C.as_linear(problem.n)
    if linear is None or linear.h.size or linear.f.size or problem.forced_in.size or problem.forced_out.size:
        return False
    signs = np.isin(linear.lower, (0.0, -np.inf)).all() and np.isin(linear.upper, (0.0, np.inf)).all()
    return bool(signs and problem.loss.squares() is not None)


def fit_batched(first: LinearProblem, Y: Vector, sample_weight: Any, k: int, **options: Any) -> ManyFits:
    """Fit all targets on one Gram matrix, given the problem of the first; options are those of `minimize_many`."""
    squares = first.loss.squares()
    assert squares is not None
    means = np.average(Y, axis=0, weights=sample_weight) if first.fit_intercept else np.zeros(Y.shape[1])
    scales = root_mean_square(Y - means, normalised_weights(len(Y), sample_weight))
    scales = np.where(scales > 0, scales, 1.0)
    ridge = 0.0 if squares.ridge is None else squares.ridge
    Z = (Y - means) / scales
    batch = minimize_many(squares.A, Z, k, first.C, sample_weight=squares.weight, ridge=ridge, **options)
    fits = [
        replace(first, target_mean=float(mean), target_scale=float(scale)).coefficients(z)
        for mean, scale, z in zip(means, scales, batch.x.toarray().T, strict=True)
    ]
    return ManyFits(np.array([coef for coef, _ in fits]), np.array([intercept for _, intercept in fits]), batch)


def fit_one_by_one(problem_of: Callable[[Vector], LinearProblem], Y: Vector, k: int, **options: Any) -> ManyFits:
    """Fit the targets one after the other; options are those of `minimize`."""
    fits = []
    for y in track(Y.T, "targets"):
        fits.append(problem_of(y).minimize(k, **options))
        uninterrupted(fits[-1].result)
    coefs, intercepts = np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits])
    return ManyFits(coefs, intercepts, [fit.result for fit in fits])


def can_batch_paths(problems: Sequence[LinearProblem], max_k: int) -> bool:
    """Return whether paths can be computed in one batch: dense least squares without constraints, few features."""
    for p in problems:
        plain = p.loss.per_feature == 1 and p.C.whole_space and not p.intercept_is_variable
        squares = p.loss.squares() if plain else None
        if squares is None or p.forced_in.size or p.forced_out.size:
            return False
        if not design_of(squares.A).entries_in_memory or max_k >= squares.A.shape[0]:
            return False
    return max_k <= MAX_BATCHED_K and len(problems) * problems[0].n ** 2 <= MAX_GRAM_ENTRIES


def batched_fold_paths(problems: Sequence[LinearProblem], ks: Vector) -> list[list[tuple[Vector, float, Vector]]]:
    """Return for each problem and k the coefficients, the intercept and the coefficients of the scaled columns."""
    grams, linear, constants, scales = [], [], [], []
    with one_thread():
        for problem in problems:
            model = problem.loss.quadratic()
            assert model is not None
            scale = np.where(model.diagonal > 0, np.sqrt(model.diagonal), 1.0)
            grams.append(model.block(np.arange(model.n)) / np.outer(scale, scale))
            linear.append(model.r / scale)
            constants.append(model.constant)
            scales.append(scale)
        states = batched_k_paths(np.array(grams), np.array(linear), np.array(constants), int(ks[-1]))
    paths = []
    for place, (problem, scale) in enumerate(zip(problems, scales, strict=True)):
        path = []
        for k in ks:
            z, state = np.zeros(problem.n), states[int(k) - 1]
            z[state.S[place]] = state.x[place] / scale[state.S[place]]
            path.append((*problem.coefficients(z), z))
        paths.append(path)
    return paths
