"""Linear models with at most k coefficients: columns centred and scaled for the search, intercept apart, all undone in the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ksparse.batch.paths import batched_k_paths
from ksparse.data import check_data, design_of, root_mean_square
from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.linear.losses import LossMaker, check_loss, huber_with, make_loss, name_of
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


@dataclass(frozen=True)
class LinearFit:
    """coef·x + intercept, and the search that found it (in scaled variables); of several targets or classes one row and entry each."""

    coef: Vector
    intercept: Any
    result: Result


@dataclass(frozen=True)
class LinearProblem:
    """A linear model as a k-sparse problem: A = (X − mean)/size, with a last column of ones where the intercept is a variable."""

    loss: Loss
    C: ConvexSet
    n: int  # features
    free: bool  # whether the intercept is the last variable: always in, never bounded, not counted
    mean: Vector  # taken off the columns
    size: Vector  # what they were divided by
    level: Any  # taken off the target: a number, or one for each of several
    unit: float  # what the target was divided by, and so the coefficients
    both: float  # what X and the target were divided by besides, which leaves the coefficients as they are
    intercept: bool
    low: Vector  # bounds of the coefficients, exact
    high: Vector
    forced_in: Vector
    forced_out: Vector

    @property
    def width(self) -> int:
        """Coefficients of each feature: one, or as many as there are targets or classes that share their features."""
        return self.loss.per_feature

    def minimize(self, k: int, **options: Any) -> LinearFit:
        """The best model with at most k features; of none, where there is no intercept to fit either, 0."""
        self._require_room(
            self.n if options.get("groups") is not None else check_integer(k, "k", 0, self.n)
        )  # groups count otherwise
        return self.undone(minimize(self.loss, int(k) + self.free, self.C, **self._forced(options)))

    def path(self, ks: Iterable[int], **options: Any) -> list[LinearFit]:
        """The best models for several k, ascending."""
        sizes = [check_integer(k, "ks", 1, self.n) + self.free for k in ks]
        self._require_room(
            self.n if options.get("groups") is not None else min(sizes) - self.free
        )  # groups count otherwise
        return [self.undone(result) for result in k_path(self.loss, sizes, self.C, **self._forced(options)).results]

    def _require_room(self, k: int) -> None:
        if self.forced_in.size > k:
            raise InfeasibleError(f"{self.forced_in.size} features are forced in, more than k = {k}")

    def _forced(self, options: dict[str, Any]) -> dict[str, Any]:
        """forced_in and forced_out among the options, where there are any: the paper's methods do not know them."""
        inside = np.append(self.forced_in, self.n) if self.free else self.forced_in
        options = options | self._beside(options) if self.free else options
        return (
            options
            | ({"forced_in": inside} if inside.size else {})
            | ({"forced_out": self.forced_out} if self.forced_out.size else {})
        )

    def _beside(self, options: dict[str, Any]) -> dict[str, Any]:
        """Labels with one more, for the intercept."""
        found, own = dict[str, Any](), ("intercept", self.n)
        if options.get("groups") is not None:
            found["groups"] = [*options["groups"], own]
        if options.get("group_limits") is not None:
            found["group_limits"] = [*options["group_limits"][0], own], options["group_limits"][1]
        return found

    def undone(self, result: Result) -> LinearFit:
        """The answer in the units of the data."""
        return LinearFit(*self.coefficients(np.asarray(result.x, dtype=float)), result)

    def coefficients(self, z: Vector) -> tuple[Vector, Any]:
        """The coefficients and the intercept in the units of the data, of scaled ones."""
        if self.width > 1:
            each = zip(z.reshape(-1, self.width).T, np.broadcast_to(self.level, self.width), strict=True)
            fits = [self._of_one(column, float(level)) for column, level in each]
            return np.array([coef for coef, _ in fits]), np.array([shift for _, shift in fits])
        return self._of_one(z, self.level)

    def _of_one(self, z: Vector, level: float) -> tuple[Vector, float]:
        coef = np.clip(
            self.unit * z[: self.n] / self.size, self.low, self.high
        )  # a bound times a factor over the factor may miss it by a rounding
        coef = np.where(z[: self.n] == 0, 0.0, coef)
        shift = level + (self.unit * self.both * float(z[self.n]) if self.free else 0.0) - float(self.mean @ coef)
        return coef, shift if self.intercept else 0.0


def linear_problem(
    X: Any,
    y: Any,
    *,
    loss: str | LossMaker = "squared",
    C: ConvexSet | None = None,
    lower: Any = -np.inf,
    upper: Any = np.inf,
    fit_intercept: bool = True,
    standardize: bool = True,
    alpha: float = 0.0,
    sample_weight: Any = None,
    forced_in: Any = (),
    forced_out: Any = (),
    free_intercept: bool = True,
    delta: float | None = None,
) -> LinearProblem:
    """The k-sparse problem of a linear model of y by the columns of X.

    y : one number per row; with the squared loss several columns too, all by the same k features, as are the classes of "multinomial".
    loss : "squared", "logistic" (two classes, 0 and 1), "multinomial" (classes 0 to t − 1), "huber", "quantile" (the median), "poisson",
        "negative_binomial" (counts), "gamma", "tweedie" (amounts; all four with a log link), or a class of your own, called as
        loss(A, b, sample_weight, ridge): a `DataFit`, or any `Loss` of as many variables as A has columns. Its b is y as it is.
    delta : δ of the Huber loss, in the units of y; None for 1.345 robust standard deviations of y.
    C : a set for the coefficients, in the units of X. lower, upper : bounds, one number or one per column; they hold exactly.
    standardize : scale the columns for the search (with a C that is more than bounds they stay as they are). Where the loss has a
        minimum on a support, scaling does not change it, only which supports are tried.
    free_intercept : whether the intercept may be a variable that is always in, which only the method "auto" can keep.
    alpha : ridge per unit of weight: ½ alpha Σ wᵢ ‖z‖² is added, z the coefficients of the scaled columns, without the intercept.
    """
    check_loss(loss)
    X = check_data(X, "X")
    m, n = (int(side) for side in X.shape)
    several = np.ndim(y) == 2 and loss == "squared"
    y = _targets(y, m) if several else check_vector(y, "y", m, kind=np.zeros(0))
    weight = None if sample_weight is None else np.asarray(check_vector(sample_weight, "sample_weight", m), dtype=float)
    low, high, rest = _split(C, _bound(lower, "lower", n), _bound(upper, "upper", n), n)
    centre = fit_intercept and design_of(X).centres
    A, mean, size = scaled(
        X, weight, centre=centre, how="none" if rest is not None else "columns" if standardize else "all"
    )
    own = (
        fit_intercept and loss == "squared" and (centre or not free_intercept)
    )  # the best intercept is the mean, whatever the coefficients
    if fit_intercept and not own and not free_intercept:
        raise MissingPieceError(
            f"only method='auto' keeps an intercept apart with the {name_of(loss)} loss: use it, or fit_intercept=False"
        )
    if own and not centre:  # centred as an operator, which leaves it sparse
        mean = np.asarray(X.T @ shares(m, weight)).ravel()
        A = design_of(X).shifted(mean, size)
    level: Any = np.average(np.asarray(y, dtype=float), axis=0, weights=weight) if own else 0.0
    level = level if several else float(level)
    target = np.asarray(y, dtype=float) - level
    unit, both = _units(A, target, weight, loss, rest)
    A = A if both == 1.0 else design_of(A).shifted(np.zeros(n), np.full(n, both))
    free = fit_intercept and not own
    if free:
        A = design_of(A).with_ones()
    target = target / unit / both
    maker = (
        loss if delta is None or loss != "huber" else huber_with(check_number(delta, "delta", above=0) / unit / both)
    )
    shrunk = (
        1.0 if standardize and rest is None else float(size[0]) * both
    )  # z is then the coefficients of the columns as they were
    ridge: Any = (
        check_number(alpha, "alpha", at_least=0) * (m if weight is None else float(weight.sum())) / shrunk / shrunk
    )
    if ridge and free:
        ridge = np.append(np.full(n, ridge), 0.0)
    made = make_loss(maker, A, target, weight, ridge)
    if rest is not None and made.per_feature > 1:
        raise MissingPieceError(
            f"C = {rest} is not known for several targets or classes that share their features: bounds are"
        )
    bounds = low * size / unit, high * size / unit
    whole = _bounds_set(*bounds, free, made.per_feature) if rest is None else _beside_intercept(rest, n, free, loss)
    return LinearProblem(
        made, whole, n, free, mean, size, level, unit, both, fit_intercept, low, high,
        check_indices(forced_in, "forced_in"), check_indices(forced_out, "forced_out"),
    )  # fmt: skip


def _units(
    A: Any, target: Vector, weight: Vector | None, loss: str | LossMaker, rest: ConvexSet | None
) -> tuple[float, float]:
    """What y is divided by, so that the loss is neither tiny nor huge, and what X and y are, where a C fixes the coefficients' units."""
    if loss not in ("squared", "huber"):  # of others it is not known that they scale
        return 1.0, 1.0
    if rest is None:
        columns = root_mean_square(target.reshape(len(target), -1), shares(len(target), weight))
        return float(columns[0] if columns.size == 1 else np.sqrt(np.mean(columns**2))) or 1.0, 1.0
    return 1.0, power_of_two(max(design_of(A).magnitude(), float(np.abs(target).max())))


def _targets(Y: Any, m: int) -> Vector:
    """Several targets, one per column."""
    given = np.asarray(check_array(Y, "y", 2), dtype=float)
    check_squares(given, "y")
    if len(given) != m:
        raise ValueError(f"y must have {m} rows, one for each of X, got {len(given)}")
    return given


def _bound(value: Any, name: str, n: int) -> Vector:
    bound = check_bound(value, name)
    if isinstance(bound, float):
        return np.full(n, bound)
    return np.asarray(check_vector(bound, name, n, allow_inf=True), dtype=float)


def _split(C: ConvexSet | None, low: Vector, high: Vector, n: int) -> tuple[Vector, Vector, ConvexSet | None]:
    """The bounds, and what of C is more than bounds; with such a C there may be no others."""
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
    if free:
        low, high = np.append(low, -np.inf), np.append(high, np.inf)
    low, high = np.repeat(low, width), np.repeat(high, width)
    if np.isneginf(low).all() and np.isposinf(high).all():
        return WholeSpace()
    if np.isposinf(high).all() and np.isin(low, (0.0, -np.inf)).all():
        return Nonnegative(np.flatnonzero(low == 0.0))
    return Box(low, high)


def _beside_intercept(C: ConvexSet, n: int, free: bool, loss: str | LossMaker) -> ConvexSet:
    """C for the coefficients, with a free variable for the intercept where it is one."""
    if not free:
        return C
    linear = C.for_length(n).as_linear(n)
    if linear is None:
        raise MissingPieceError(
            f"C = {C} cannot stand beside an intercept with the {name_of(loss)} loss: use fit_intercept=False, or a polyhedral C"
        )
    return Polyhedron(
        np.hstack([linear.G, np.zeros((linear.h.size, 1))]), linear.h, np.hstack([linear.E, np.zeros((linear.f.size, 1))]), linear.f,
        lower=np.append(linear.lower, -np.inf), upper=np.append(linear.upper, np.inf),
    )  # fmt: skip


ORDINARY = (1e-6, 1e6)  # data of such a size are not touched where columns are not scaled


def scaled(X: Any, weight: Vector | None, *, centre: bool, how: str) -> tuple[Any, Vector, Vector]:
    """X with columns of root mean square 1, the means that were taken off and the factors; sparse columns stay where they are.

    how : "columns", each by its own factor; "all" by one, where they are not of an ordinary size; "none". A mean far from 0 would make
    the column nearly that of the intercept. What is left of a constant column is rounding: it becomes 0.
    """
    design = design_of(X)
    mean, rms = design.moments(shares(X.shape[0], weight), centre)
    common = power_of_two(float(rms.max())) if how == "all" else 1.0
    size = np.where(rms == 0, 1.0, rms) if how == "columns" else np.full(X.shape[1], common)
    return design.shifted(mean, np.where(rms == 0, np.inf, size)), mean, size


def shares(m: int, weight: Vector | None) -> Vector:
    """What each row counts for, in all 1."""
    return np.full(m, 1.0 / m) if weight is None or not weight.sum() > 0 else weight / weight.sum()


def power_of_two(size: float) -> float:
    """1 for data of an ordinary size, else about that size: dividing by it rounds nothing."""
    return 1.0 if size == 0.0 or ORDINARY[0] <= size <= ORDINARY[1] else float(2.0 ** np.floor(np.log2(size)))


@dataclass(frozen=True)
class ManyFits:
    """One row of coefficients and one intercept per target."""

    coef: Vector
    intercept: Vector
    results: Batch | list[Result]  # in scaled variables

    @property
    def failure(self) -> Status | None:
        """A status that is not good, where a target has one; of several the one with the smallest number."""
        numbers = self.results.status if isinstance(self.results, Batch) else [result.status for result in self.results]
        return next((status for status in Status if not status.good and status in numbers), None)


def shareable(problem: LinearProblem) -> bool:
    """Whether targets can share what is known of X: squares, the mean as intercept, and no bounds but signs, whatever the units of y."""
    linear = problem.C.as_linear(problem.n) if not problem.free else None
    if linear is None or linear.h.size or linear.f.size or problem.forced_in.size or problem.forced_out.size:
        return False
    signs = np.isin(linear.lower, (0.0, -np.inf)).all() and np.isin(linear.upper, (0.0, np.inf)).all()
    return bool(signs and problem.loss.squares() is not None)


def fit_together(first: LinearProblem, Y: Vector, sample_weight: Any, k: int, **options: Any) -> ManyFits:
    """All targets on one Gram matrix; `first` is the problem of the first, and `shareable`. The options are those of `minimize_many`."""
    squares = first.loss.squares()
    assert squares is not None
    levels = np.average(Y, axis=0, weights=sample_weight) if first.intercept else np.zeros(Y.shape[1])
    units = root_mean_square(Y - levels, shares(len(Y), sample_weight))
    units = np.where(units > 0, units, 1.0)
    batch = minimize_many(
        squares.A, (Y - levels) / units, k, first.C, sample_weight=squares.weight, ridge=0.0 if squares.ridge is None else squares.ridge,
        **options,
    )  # fmt: skip
    Z = batch.x.toarray().T
    fits = [
        replace(first, level=float(level), unit=float(unit)).coefficients(z)
        for level, unit, z in zip(levels, units, Z, strict=True)
    ]
    return ManyFits(np.array([coef for coef, _ in fits]), np.array([shift for _, shift in fits]), batch)


def fit_singly(problem_of: Callable[[Vector], LinearProblem], Y: Vector, k: int, **options: Any) -> ManyFits:
    """One target after the other; the options are those of `minimize`."""
    fits = []
    for y in track(Y.T, "targets"):
        fits.append(problem_of(y).minimize(k, **options))
        uninterrupted(fits[-1].result)
    return ManyFits(
        np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits]), [fit.result for fit in fits]
    )


GRAMS = 2**24  # entries of all Gram matrices together
LONGEST = 64  # nonzeros: beyond, factorisations are better updated than made anew


def walks_together(problems: Sequence[LinearProblem], most: int) -> bool:
    """Whether paths can be walked together: dense squares with nothing asked of the coefficients."""
    plain = all(
        p.width == 1 and p.C.whole_space and not p.free and not p.forced_in.size and not p.forced_out.size
        for p in problems
    )
    squares = [p.loss.squares() for p in problems] if plain else [None]
    n = problems[0].n
    shown = all(s is not None and design_of(s.A).shown and most < s.A.shape[0] for s in squares)
    return shown and most <= LONGEST and len(problems) * n * n <= GRAMS


def paths_together(problems: Sequence[LinearProblem], ks: Vector) -> list[list[tuple[Vector, float, Vector]]]:
    """For each problem and k the coefficients and the intercept in the units of the data, and the coefficients of the scaled columns."""
    grams, pulls, halves, sizes = [], [], [], []
    with one_thread():
        for problem in problems:
            model = problem.loss.quadratic()
            assert model is not None
            unit = np.where(model.diagonal > 0, np.sqrt(model.diagonal), 1.0)
            grams.append(model.block(np.arange(model.n)) / np.outer(unit, unit))
            pulls.append(model.r / unit)
            halves.append(model.constant)
            sizes.append(unit)
        found = batched_k_paths(np.array(grams), np.array(pulls), np.array(halves), int(ks[-1]))
    paths = []
    for place, (problem, size) in enumerate(zip(problems, sizes, strict=True)):
        path = []
        for k in ks:
            z, at = np.zeros(problem.n), found[int(k) - 1]
            z[at.S[place]] = at.x[place] / size[at.S[place]]
            path.append((*problem.coefficients(z), z))
        paths.append(path)
    return paths
