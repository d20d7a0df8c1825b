"""Polishing: the best point over C on a given support, to a relative KKT residual of 1e-8.

Newton's method minimises its models over C by direct linear algebra (`minimize_quadratic`). First-order methods are for
losses without a Hessian, and for sets that give no direct solve.

`minimize_by_cutting_planes` is for a convex quadratic over a set given only by its projection. The projection z of a
point u outside C gives a half-space that contains C but not u, with z on its boundary. If the minimiser over a few of
these is in C, it is the minimiser over C; if there is none, C may contain the ray along which the quadratic is
unbounded. Few half-spaces are enough if few planes bound C. A round C would need more and more of them: the first-order
methods take over once a half-space brings the minimiser little nearer to C.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.firstorder.loop import Run, drive
from ksparse.firstorder.methods import APDCA, PDCA, Method, PDCAe
from ksparse.firstorder.problem import Point, Problem, Stopping, cancellation
from ksparse.firstorder.steps import FixedStep
from ksparse.losses import Loss
from ksparse.losses.base import count_evaluations
from ksparse.numerics.constraints import Linear, unit_rows, unit_scales
from ksparse.numerics.nonconvex import ProjectedGradientRun, is_unbounded_below, minimize_by_projection
from ksparse.numerics.qp import Active, Objective, convex, least_squares, null_space, regular_minimum, solve_qp
from ksparse.penalties import NoPenalty
from ksparse.result import Status
from ksparse.search.candidate import Candidate
from ksparse.sets import ConvexSet, Polyhedron
from ksparse.util.arrays import Vector, largest_safe_entry, norm
from ksparse.util.resources import OutOfTimeError

if TYPE_CHECKING:
    from ksparse.search.problem import SupportProblem

KKT = 1e-8  # the relative residual that is promised
DAMPING = 16.0  # factor by which curvature that is added to a model rises and falls
DAMPINGS = 20  # values of the added curvature tried for one step
NOISE = 1e-13  # relative to F: a smaller fall may be rounding
LARGE = 1_000  # variables and rows from which a quadratic program takes a good part of a second
FLAT = 1e-14  # share of the largest curvature, per variable of unit curvature, below which a direction is flat
SLOPE = 1e-9  # share of the gradient's terms below which a slope along a flat direction is rounding
MET = 1e-13  # violation, relative to the terms of an equation or the size of x, up to which a constraint is met
ROUGH = 10  # steps from each of several starts, before the best of them continues alone
CUTS = 8  # the largest number of half-spaces
NEARER = 0.1  # factor by which each half-space must reduce the distance to C
RAY_FLAT = 1e-13  # the value of FLAT for a ray
RAY_SLOPE = 1e-6  # share of c along flat directions above which it is not rounding
FAR = (1e3, 1e6, 1e9)  # multiples of the size of x: a ray is taken to lie in C if C holds these points of it


@dataclass(frozen=True)
class PolishEffort:
    """Limits of a polish."""

    newton: int  # steps of Newton's method
    steps: int  # of the first-order methods, where they are needed
    residual: float  # that they are to end at
    by_value: bool = False  # Newton's method may stop where F falls no more: badly scaled residuals lag behind


THOROUGH = PolishEffort(100, 20_000, KKT)  # for an answer


@dataclass(frozen=True)
class PolishedPoint:
    """The best point found on a support."""

    z: Vector  # its entries on the support, float64
    value: float  # φ there
    residual: float  # relative KKT residual there

    @classmethod
    def of(cls, problem: Problem, x: Point) -> PolishedPoint:
        """Measure a point of a restricted problem."""
        return cls(x.x, problem.F(x), problem.residual(x, curvature_bound(problem, x)))


def polish(loss: Loss, C: ConvexSet, support: Vector, start: Vector, deadline: float = math.inf) -> PolishedPoint:
    """Minimise φ over C, both of all variables, with x = 0 off the support, from `start` (entries on the support).

    `UnboundedError` where φ falls without end there.
    """
    problem = restricted_problem(loss, C, support)
    return PolishedPoint.of(problem, best_point(problem, start, deadline))


def polish_candidate(problem: SupportProblem, candidate: Candidate) -> PolishedPoint:
    """Solve for the candidate's point once more, from the raw data rather than the model, to the promised residual."""
    support = candidate.support
    if not support.size:
        return PolishedPoint(candidate.x.ravel(), candidate.value, _residual_at_zero(problem, candidate.value))
    entries = entries_of(problem, support)
    if problem.row_problem is not None:
        restricted = restricted_problem(problem.loss, problem.C, entries)
        return PolishedPoint.of(restricted, restricted.point(problem.row_problem.polish(support, candidate.x).ravel()))
    loss, C = problem.loss.restrict(entries).as_float64(), problem.C.restrict(entries)
    linear = problem.C.as_linear(problem.n) if problem.floors.any else None  # with every bound, implied ones too
    linear = None if linear is None else linear.on(support)
    if linear is not None:
        linear = problem.floors.with_signs_of(linear, support, candidate.x)
        C = Polyhedron(linear.G, linear.h, linear.E, linear.f, linear.lower, linear.upper)
    solvable = problem.can.exact_evaluation and loss.is_quadratic and loss.has_hessian
    if solvable and (direct := _solved_directly(loss, C, candidate)) is not None:
        return direct
    restricted = Problem(loss, NoPenalty(), C, support.size)
    return PolishedPoint.of(restricted, best_point(restricted, candidate.x, problem.deadline))


def _solved_directly(loss: Loss, C: ConvexSet, candidate: Candidate) -> PolishedPoint | None:
    """Return the minimum of a quadratic φ over C by one direct solve; None if it is not good enough."""
    zero = np.zeros_like(candidate.x)
    try:
        at_zero = loss.gradient_at(zero, image := loss.image(zero))
        model = _model(loss, zero, image, at_zero)
        z = None if model is None else minimize_quadratic(model, C, candidate.x)
    except (InfeasibleError, UnboundedError):
        return None
    if z is None or not np.isfinite(z).all():
        return None
    value, gradient = loss.value_at(z, image := loss.image(z)), loss.gradient_at(z, image)
    count_evaluations(values=1, gradients=2)
    slope, length = norm(gradient), norm(z)
    l = max(loss.lipschitz(), 1e-3 * slope / (max(length, C.size) or 1.0), 1e-300)  # noqa: E741
    scale = max(norm(at_zero), slope, cancellation(loss, z, value, l))
    residual = l * norm(C.project(z - gradient / l) - z)
    residual = residual / scale if scale > 0 else residual
    accurate = residual <= max(KKT, 1e2 * loss.rounding) and value <= candidate.value + NOISE * abs(candidate.value)
    return PolishedPoint(z, value, residual) if accurate and C.contains(z) else None


def entries_of(problem: SupportProblem, support: Vector) -> Vector:
    """Return the entries of x that belong to a support: the variables themselves, or whole rows of a matrix."""
    t = problem.width
    return support if t == 1 else np.asarray((support[:, None] * t + np.arange(t)).ravel())


def slow_to_project(problem: SupportProblem, support: Vector) -> bool:
    """Return whether the time is up and a projection onto C on the support, a quadratic program, takes seconds."""
    rows = 0 if problem.linear is None else problem.linear.h.size
    return problem.expired and support.size + rows > LARGE


def _residual_at_zero(problem: SupportProblem, value: float) -> float:
    """Return the residual at x = 0 over the allowed variables with the largest slopes, as many as a point may use."""
    if problem.floors.any:  # no other point is near 0
        return 0.0
    step = -problem.loss.gradient(np.zeros(problem.n * problem.width))
    if problem.row_problem is not None:
        step = np.linalg.norm(step.reshape(-1, problem.width), axis=1)
    elif problem.linear is None:
        step = problem.C.project(step)
    else:
        step = np.where(step > 0, problem.linear.upper > 0, problem.linear.lower < 0) * step
    size = np.where(problem.allowed, np.abs(step), 0.0)
    ranked = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
    support = np.sort(problem.rules.longest_extendable(ranked, problem.asked))
    if not support.size or not problem.allows(support):
        return 0.0
    return residual_at_zero(problem.loss, problem.C, entries_of(problem, support), problem.claim_tol(value))


def best_point(problem: Problem, start: Vector, deadline: float, work: PolishEffort = THOROUGH) -> Point:
    """Return the best point of C within the limits; its residual is not computed."""
    x = problem.point(problem.C.project(np.asarray(start, dtype=np.float64)))
    # the residual that can be achieved is larger where the loss itself is computed in single precision
    target, settled = max(work.residual, KKT, 1e2 * problem.loss.rounding), False
    try:
        if problem.loss.has_hessian:
            x, settled = _newton(problem, x, deadline, work)
        if not (settled and work.by_value) and problem.residual(x, curvature_bound(problem, x)) > target:
            x = _first_order(problem, x, deadline, work.steps, target)
    except UnboundedError:
        if problem.loss.least == -math.inf:  # else arithmetic's word against the loss's
            raise
    if not problem.C.contains(x.x):  # badly scaled programs are solved to their own terms, which may be large beside x
        x = problem.point(problem.C.project(x.x))
    return x


def residual_at_zero(loss: Loss, C: ConvexSet, support: Vector, negligible: float) -> float:
    """Return the residual at x = 0 over a support; 0 if no step there lowers φ by more than is negligible.

    At 0 the residual is relative to the slope itself, so that a slope that is rounding would look as steep as any.
    """
    try:
        problem = restricted_problem(loss, C, support)
    except InfeasibleError:
        return 0.0
    x = problem.point(problem.zeros())
    curvature = curvature_bound(problem, x)
    residual = problem.residual(x, curvature)
    for _ in range(DAMPINGS if residual > 0 else 0):
        if problem.F(problem.point(problem.C.project(x.x - x.gradient / curvature))) < problem.F(x) - negligible:
            return residual
        curvature /= DAMPING
    return 0.0


def restricted_problem(loss: Loss, C: ConvexSet, support: Vector) -> Problem:
    """Return the problem min φ over C on the support, in NumPy float64."""
    return Problem(loss.restrict(support).as_float64(), NoPenalty(), C.restrict(support), support.size)


def curvature_bound(problem: Problem, x: Point) -> float:
    """Return a curvature of the size of ∇²φ at x, to measure residuals with."""
    L = _lipschitz(problem)
    if not np.isfinite(L):  # the largest along a few directions: the gradient alone is noise at an optimum
        directions = (x.gradient, x.x, np.random.default_rng(0).standard_normal(problem.n))
        units = [d / norm(d) for d in directions if norm(d) > 0]
        L = max(abs(problem.curvature(x, problem.point(unit))) for unit in units)
    return problem.floored_curvature(L, x)


def _lipschitz(problem: Problem) -> float:
    with suppress(OutOfTimeError):
        return problem.loss.lipschitz()
    return math.inf


def _newton(problem: Problem, x: Point, deadline: float, work: PolishEffort) -> tuple[Point, bool]:
    """Run Newton's method on C: minimise the second-order model over C exactly, then search along the line.

    Where F falls slowly by a model that is a majorant, as Huber's is, the second derivative takes its place while long
    steps are good. Where the curvature vanishes, as far out on a linear branch, the model has no minimum or one that is
    much too far away: then a step with damping is made (Levenberg and Marquardt). Return the point, and whether F would
    fall no more.
    """
    loss, fell = problem.loss, math.inf
    settled = (0.1 * work.residual) ** 2  # of F, by which it still falls: the step taken then squares that
    for _ in range(work.newton):
        if time.perf_counter() >= deadline:
            return x, False
        g, model = x.gradient, _model(loss, x.x, x.image, x.gradient)
        if model is None:
            return x, False
        better, t = None, 1.0
        try:
            w = minimize_quadratic(model, problem.C, x.x)
            if w is None or not np.isfinite(w).all():
                return x, False
        except InfeasibleError:
            return x, False
        except UnboundedError:  # of the model; of φ itself, if that is quadratic
            if problem.loss.is_quadratic:
                raise
            w, done = None, False
        if w is not None:
            d = problem.point(w) - x
            slope = float(g @ d.x)
            while t > 1e-10:
                trial = problem.point(w) if t == 1.0 else x + t * d
                if problem.F(trial) <= problem.F(x) + 1e-4 * t * slope + 4e-16 * abs(problem.F(x)):
                    better = trial
                    break
                t /= 2.0
            short = float(np.abs(t * d.x).max()) <= 1e-15 * float(np.abs(w).max(initial=1e-300))
            done = short or abs(slope) <= settled * max(abs(problem.F(x)), 1e-300)
        if better is None:
            better, done = _damped(problem, model, x), False
        if better is None:
            return x, False
        fell, before, x = problem.F(x) - problem.F(better), fell, better
        if done and loss is problem.loss:
            return x, True
        loss = loss.with_exact_hessian() if fell > 0.25 * before and t > 0.1 and not done else problem.loss
    return x, False


def _damped(problem: Problem, model: Objective, x: Point) -> Point | None:
    """Return the best step by the model with more and less curvature added; None if none lowers F beyond rounding.

    The curvature is added around x, in proportion to the squares of the columns' lengths.
    """
    if problem.loss.convex is False or problem.loss.least == -math.inf:  # F may fall for ever
        return None
    unit, best = _stiffness(problem.loss, problem.n), x
    L = _lipschitz(problem)
    added = L if 0.0 < L < math.inf else norm(x.gradient) / max(norm(x.x), 1.0)
    for _ in range(DAMPINGS):
        try:
            damped = Objective(model.H + np.diag(added * unit), model.c - added * unit * x.x)
            w = minimize_quadratic(damped, problem.C, x.x)
        except (InfeasibleError, UnboundedError):
            break
        if w is None or not np.isfinite(w).all():
            break
        trial = problem.point(w)
        if problem.F(trial) < problem.F(best) - NOISE * abs(problem.F(x)):
            best, added = trial, added / DAMPING
        elif best is not x:
            break
        else:  # too short to be seen, or too long
            added = added / DAMPING if problem.F(trial) <= problem.F(x) else added * DAMPING
    return None if best is x else best


def _stiffness(loss: Loss, n: int) -> Vector:
    """Return the squares of the columns' lengths, the largest being 1: the curvature of each variable, relatively."""
    lengths = np.broadcast_to(np.asarray(loss.lengths(), dtype=np.float64), n)
    largest = float(lengths.max(initial=0.0))
    return np.square(np.maximum(lengths / largest, 1e-8)) if largest > 0 else np.ones(n)


def _model(loss: Loss, x: Vector, image: Vector, gradient: Vector) -> Objective | None:
    """Return the second-order model of φ at x, from the data where H is too coarse; None where it overflows."""
    try:
        H = loss.hessian_at(x, image)
    except ValueError:  # differences may leave the domain of a user's function
        return None
    if not np.isfinite(H).all():
        return None
    c = gradient - H @ x
    # that is c but for rounding, which along a flat direction is all there is: at 0 it is c itself
    if loss.is_quadratic and x.any():
        zero = np.zeros_like(x)
        c = loss.gradient_at(zero, loss.image(zero))
    model = Objective(H, c)
    root = None if model.well_conditioned else loss.root_at(x, image)
    return model if root is None else Objective.of_squares(*root)


def _first_order(problem: Problem, x: Point, deadline: float, steps: int, target: float) -> Point:
    """Run first-order methods, for sets and losses without a direct solve.

    A line search compares values of F, which distinguish points only to the square root of rounding. So backtracking
    brings x near, and the fixed step, which compares nothing, finishes.
    """
    monotone = problem.loss.convex is False
    if problem.loss.is_quadratic and problem.loss.has_hessian:  # on its H
        x = problem.point(problem.C.project(x.x))  # what is a little outside has a value that no point of C has
        H = problem.loss.hessian_at(x.x, x.image)
        model = Objective(H, x.gradient - H @ x.x)
        last = problem.point(settled_by_projection(model, problem.C, [x.x], steps, target, deadline))
        return last if problem.F(last) <= problem.F(x) + 1e-13 * abs(problem.F(x)) else x
    near = _run(PDCA() if monotone else APDCA(), problem, x.x, steps // 4, deadline, target)
    if near is None:
        return x
    if near.status is Status.UNBOUNDED:
        raise UnboundedError("φ falls without end on this support")
    L = _lipschitz(problem)
    if not np.isfinite(L):
        L = 2.0 / float(near.trace.step[-10:].min())
    best, slack = min(x, problem.point(near.x), key=problem.F), 1e-13 * abs(problem.F(x))
    if near.status is Status.SETTLED and near.trace.residual[-1] <= target / 10:
        return problem.point(near.last) if problem.F(problem.point(near.last)) <= problem.F(best) + slack else best
    left = 2 * steps
    while left > 0:  # an estimated L may be too small: then F rises, and L is raised
        rule = FixedStep(max(L, 1e-300))
        home = _run(PDCA(rule) if monotone else PDCAe(rule), problem, best.x, min(steps, left), deadline, target)
        if home is not None and problem.F(problem.point(home.last)) <= problem.F(best) + slack:
            return problem.point(home.last)
        L, left = 4.0 * L, left - max(steps // 8, 0 if home is None else home.nit)
    return best


def _run(method: Method, problem: Problem, x: Vector, steps: int, deadline: float, target: float) -> Run | None:
    """Run a method to a tenth of the target; None if the user's function refused a point on the way."""
    stopping = Stopping(tol=0.0, tol_residual=target / 10, max_iter=steps, rule="step")
    with suppress(ValueError):  # NaN from a step too far
        return drive(method, problem, x, stopping.until(deadline), catch_interrupt=False)
    return None


def minimize_quadratic(objective: Objective, C: ConvexSet, near: Vector) -> Vector | None:
    """Return argmin ½xᵀHx + cᵀx over C; None if C needs a positive semidefinite H or has only a projection.

    Of two equally good points (an eigenvector and its negative) the one on the side of `near`; where no constraint is
    active and H has no curvature along some direction, the one nearest to `near`. `UnboundedError` where there is no
    minimum.
    """
    linear = None if C.whole_space else C.as_linear(objective.c.size)
    unheld = C.whole_space or (linear is not None and linear.equations_only and not linear.f.size)
    if unheld and (x := regular_minimum(objective)) is not None:
        return x
    linear = linear or C.as_linear(objective.c.size)
    if linear is not None and (x := _nearest_minimum(objective, linear, near)) is not None:
        return x
    if linear is None:
        found = C.minimize_quadratic(objective.H, objective.c, near)
        return minimize_by_cutting_planes(objective, C, near) if found is None else found.x
    if objective.R is not None or convex(objective.H):
        return solve_qp(objective, linear, _active_at(near, linear), near).x
    return _on_equations(objective.H, objective.c, linear) if linear.equations_only else None


def _nearest_minimum(objective: Objective, linear: Linear, near: Vector) -> Vector | None:
    """Return the minimum nearest to `near` of a quadratic with flat directions, where no bound or row is active.

    None where there is no such direction, no minimum, or an active constraint. The solution of a linear system with a
    singular H goes along such directions as far as rounding drives it.
    """
    if objective.R is not None or objective.well_conditioned:
        return None
    H, x, along = objective.H, near, np.eye(near.size)
    if linear.f.size:
        E, f, _ = unit_rows(linear.E, linear.f)
        x, along = near + least_squares(E, f - E @ near), null_space(E)
    along = along / unit_scales(np.einsum("ij,ij->j", along, H @ along))
    if not along.shape[1]:
        return None
    bends, vectors = np.linalg.eigh(along.T @ H @ along)
    flat = np.abs(bends) <= FLAT * bends.size * max(float(bends[-1]), 0.0)
    pull = vectors.T @ (along.T @ objective.gradient(x))
    terms = np.abs(along.T) @ (np.abs(H) @ np.abs(x) + np.abs(objective.c))
    if not flat.any() or (bends[~flat] < 0).any() or np.abs(pull[flat]).max() > SLOPE * norm(terms):
        return None
    x = x - along @ (vectors[:, ~flat] @ (pull[~flat] / bends[~flat]))
    return x if (x >= linear.lower).all() and (x <= linear.upper).all() and linear.broken(x) <= MET else None


def _active_at(x: Vector, linear: Linear) -> Active | None:
    """Return the constraints that x meets as equations; None if there are none."""
    active = Active(x == linear.lower, (x == linear.upper) & (linear.lower < linear.upper), linear.G @ x >= linear.h)
    return active if any(part.any() for part in (active.at_lower, active.at_upper, active.rows)) else None


def settled_by_projection(
    objective: Objective, C: ConvexSet, begins: list[Vector], steps: int, target: float, deadline: float = np.inf
) -> Vector:
    """Return a stationary point of a quadratic over a set with a projection, from the best of several after some steps.

    The relative residual is `target` if the steps suffice; `UnboundedError` if the quadratic is unbounded.
    """
    H, c = objective.H, objective.c

    def ended(x: Vector, steps: int) -> ProjectedGradientRun:
        return minimize_by_projection(H, c, C.project, x, steps, 0.1 * target, deadline)

    x = begins[0]
    if len(begins) > 1:
        x = min((ended(begin, ROUGH).x for begin in begins), key=objective.value)
    found = ended(x, steps)
    if not found.settled and is_unbounded_below(H, c, C.project, found):
        raise UnboundedError("φ falls without end on this support")
    return found.x


def _on_equations(H: Vector, c: Vector, linear: Linear) -> Vector:
    """Return the minimum of a quadratic that is convex only along the solutions of Ex = f."""
    along, x = np.eye(c.size), np.zeros(c.size)
    if linear.f.size:
        along, x = null_space(linear.E), least_squares(linear.E, linear.f)
    along_H = along.T @ H @ along
    if along.shape[1] and not convex(along_H):
        raise UnboundedError("negative curvature along a direction that nothing bounds")
    inside = Objective(along_H, along.T @ (H @ x + c))
    return np.asarray(x + along @ solve_qp(inside, Linear.of(along.shape[1])).x) if along.shape[1] else x


def minimize_by_cutting_planes(objective: Objective, C: ConvexSet, near: Vector) -> Vector | None:
    """Return the minimum over C; None if it takes too many half-spaces.

    `UnboundedError` if a ray from `near` shows that there is none.
    """
    n, outside = objective.c.size, np.inf
    G, h = np.zeros((0, n)), np.zeros(0)
    if objective.R is None and not convex(objective.H):
        return None
    for _ in range(CUTS):
        try:
            x = solve_qp(objective, Linear.of(n, G=G, h=h)).x
        except InfeasibleError:
            return None
        except UnboundedError:
            if _has_falling_ray(objective, C, near):
                raise
            return None
        before, outside = outside, C.violation(x)
        if outside <= MET * max(1.0, norm(x)) if h.size else C.contains(x):
            return x
        if outside > NEARER * before:
            return None
        a, b = C.separating_halfspace(x)
        G, h = np.vstack([G, a]), np.append(h, b)
    return None


def _has_falling_ray(objective: Objective, C: ConvexSet, x: Vector) -> bool:
    """Return whether C has a ray from x with slope and without curvature: the steepest, along the planes it meets."""
    unit = unit_scales(np.diag(objective.H))
    values, vectors = np.linalg.eigh(objective.H / unit / unit[:, None])
    flat = vectors[:, values <= RAY_FLAT * values.size * max(float(values[-1]), 0.0)]
    steepest = -(flat.T @ (objective.c / unit))
    if norm(steepest) <= RAY_SLOPE * norm(objective.c / unit):
        return False
    walls, outside, size = np.zeros((0, steepest.size)), np.inf, max(1.0, norm(x))
    for _ in range(CUTS):
        way = steepest
        if walls.size:
            cone = Linear.of(way.size, G=walls, h=np.zeros(len(walls)))
            way = solve_qp(Objective(np.eye(way.size), -steepest), cone).x
        if float(way @ steepest) <= RAY_SLOPE * float(steepest @ steepest):
            return False
        ray = (flat @ way) / unit
        ends = [x + (far * size / norm(ray)) * ray for far in FAR]
        if all(C.contains(end) for end in (*ends, x + (largest_safe_entry(x) / norm(ray)) * ray)):
            return True
        before, outside = outside, C.violation(ends[-1])
        if outside > NEARER * before:
            return False
        walls = np.vstack([walls, flat.T @ (C.separating_halfspace(ends[-1])[0] / unit)])
    return False
