"""Small convex quadratic programs over a polyhedron, solved to rounding.

An interior-point solution has the error of its tolerance: a weight of 1e-9 instead of 0, a budget of 0.999999999. So
PIQP only guesses the active constraints, and linear algebra makes the solution exact. Every returned solution has been
checked: feasible to the rounding of each constraint's terms, with multipliers of the right sign. If that fails, linear
programming decides whether there is a feasible point, and a primal active-set method starts from one.

`primal_dual_active_set` changes the active set by all violated constraints and all multipliers of the wrong sign at
once: a few solves from a good guess, but it may cycle. `primal_active_set` changes one constraint at a time: slow, and
it ends at the optimum or on a ray along which the objective is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import piqp

from ksparse.errors import InfeasibleError, UnboundedError, UndecidedError
from ksparse.numerics.constraints import Linear, activity_terms, unit_rows, unit_scales
from ksparse.util.arrays import Vector
from ksparse.util.resources import scipy_linalg

REGULAR = 1e-3  # sine of a variable's angle to those before it, above which one linear system is enough
DEPENDENT = 1e-4  # sine of a column's angle to those before it, below which H = AᵀA is too inaccurate
ROUNDS = 30  # of `primal_dual_active_set`
GUESS_ROUNDS = 3  # of it, from a guess of the constraints: more would cost as much as an interior-point solve
TINY = 1e-11  # of a constraint's terms: a smaller violation is rounding
MET = 1e-13  # of a constraint's terms: up to this violation it is satisfied
TRUSTED = 1e-9  # of a constraint's terms: a solution with a larger violation is refused
OFF = 1e-3  # of a constraint's terms: an interior-point solution with a larger violation is useless
DUST = 1e-14  # of the largest entry of x: smaller entries are rounding
FLAT = 1e-15  # of the largest curvature, per variable: smaller curvature is rounding
PULL = 1e-9  # of the gradient's terms: a smaller slope is no reason to move along a flat direction
STATIONARY = 1e-9  # of the gradient's terms: a point with a larger gradient is no optimum
FAR = 1e20  # a larger right-hand side does not matter, for x of size 1


@dataclass(frozen=True)
class Objective:
    """½xᵀHx + cᵀx for a symmetric H, which need not be positive semidefinite.

    A sum of squares ½‖Rx − q‖² keeps its root R: the condition number of H = RᵀR is that of R squared, so that nearly
    dependent columns would lose twice as many digits.
    """

    H: Vector
    c: Vector
    R: Vector | None = None
    q: Vector | None = None
    rest: float = 0.0  # φ = ½‖Rx − q‖² + ½·rest²

    @classmethod
    def of_squares(cls, R: Vector, q: Vector, rest: float) -> Self:
        """Return ½‖Rx − q‖² + ½·rest² without its constant."""
        return cls(R.T @ R, -(R.T @ q), R, q, rest)

    @cached_property
    def independence(self) -> float:
        """How far the variables are from dependent: `least_sine` of H."""
        return least_sine(self.H)

    @property
    def well_conditioned(self) -> bool:
        """Whether no variable is nearly a combination of those before it."""
        return self.independence > DEPENDENT

    def gradient(self, x: Vector) -> Vector:
        """Return Hx + c."""
        if self.R is None or self.q is None:
            return np.asarray(self.H @ x + self.c)
        return np.asarray(self.R.T @ (self.R @ x - self.q))

    def value(self, x: Vector) -> float:
        """Return ½xᵀHx + cᵀx."""
        return float(0.5 * x @ self.H @ x + self.c @ x)

    def terms(self, x: Vector) -> float:
        """Return the sum of the absolute terms of `value`, in proportion to its rounding."""
        size = np.abs(x)
        return float(size @ np.abs(self.H) @ size + np.abs(self.c) @ size)

    def scaled(self, unit: Vector) -> Objective:
        """Return the objective as a function of unit·x."""
        R = None if self.R is None else self.R / unit
        return Objective(self.H / unit / unit[:, None], self.c / unit, R, self.q)

    def on(self, free: Vector, fixed: Vector) -> Objective:
        """Return the objective of the free variables, with the others fixed to their entries in `fixed`."""
        H, c = self.H[np.ix_(free, free)], self.c[free] + self.H[np.ix_(free, ~free)] @ fixed[~free]
        if self.R is None or self.q is None:
            return Objective(H, c)
        return Objective(H, c, self.R[:, free], self.q - self.R[:, ~free] @ fixed[~free])

    def minimum_under(self, M: Vector, right: Vector) -> tuple[Vector, Vector]:
        """Return the least-squares solution x, λ of Hx + c + Mᵀλ = 0, Mx = right; with a root, without using H."""
        n, r = self.c.size, right.size
        if self.R is None or self.q is None:
            K = np.block([[self.H, M.T], [M, np.zeros((r, r))]]) if r else self.H
            solution = solve_symmetric(K, np.concatenate([-self.c, right]))
            return solution[:n], solution[n:]
        x, along = np.zeros(n), np.eye(n)
        if r:
            x, along = least_squares(M, right), null_space(M)
        if along.shape[1]:
            x = x + along @ least_squares(self.R @ along, self.q - self.R @ x)
        return x, least_squares(M.T, -self.gradient(x)) if r else np.zeros(0)


def regular_minimum(objective: Objective) -> Vector | None:
    """Return −H⁻¹c if H is clearly positive definite; None if not, or if there is a root."""
    if objective.R is not None or not objective.independence > REGULAR:
        return None
    unit = unit_scales(objective.H.diagonal())
    H, d = objective.H / unit / unit[:, None], -objective.c / unit
    x = np.linalg.solve(H, d)
    return np.asarray((x + np.linalg.solve(H, d - H @ x)) / unit)


def least_squares(M: Vector, d: Vector) -> Vector:
    """Return the shortest x of least ‖Mx − d‖, for columns scaled to length 1, with one step of refinement."""
    size = np.sqrt(np.einsum("ij,ij->j", M, M))
    size[size == 0] = 1.0
    unit = M / size
    x = shortest(unit, d)
    return np.asarray((x + shortest(unit, d - unit @ x)) / size)


def shortest(M: Vector, d: Vector, rcond: float | None = None) -> Vector:
    """Return the shortest x of least ‖Mx − d‖.

    Where LAPACK's divide-and-conquer SVD does not converge, pivoted QR, which has no iterations, replaces it.
    """
    try:
        return np.asarray(np.linalg.lstsq(M, d, rcond=rcond)[0])
    except np.linalg.LinAlgError:
        cond = np.finfo(np.float64).eps * max(M.shape) if rcond is None else rcond
        return np.asarray(scipy_linalg().lstsq(M, d, cond=cond, lapack_driver="gelsy", check_finite=False)[0])


def svd(M: Vector, full_matrices: bool = True) -> tuple[Vector, Vector, Vector]:
    """Return U, the singular values and Vᵀ; by QR iterations where LAPACK's divide and conquer does not converge."""
    try:
        return np.linalg.svd(M, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        options = {"full_matrices": full_matrices, "lapack_driver": "gesvd", "check_finite": False}
        U, sizes, rows = scipy_linalg().svd(M, **options)
        return U, sizes, rows


def null_space(M: Vector) -> Vector:
    """Return an orthonormal basis of the solutions of Mx = 0, for rows of size 1."""
    _, sizes, rows = svd(M)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0)).sum())
    return np.asarray(rows[rank:].T)


def solve_symmetric(K: Vector, d: Vector) -> Vector:
    """Return K⁻¹d with one step of refinement; the least-squares solution if K is singular.

    Here and in the search NumPy's linear algebra is used: threads of SciPy's own BLAS would wait for NumPy's.
    """
    if not d.size:
        return d
    with suppress(np.linalg.LinAlgError):
        u = np.linalg.solve(K, d)
        if float(np.abs(u).max()) * float(np.abs(K).max()) < 1e13 * max(float(np.abs(d).max()), 1e-300):
            return np.asarray(u + np.linalg.solve(K, d - K @ u))
    return shortest(K, d, rcond=1e-13)


def convex(H: Vector) -> bool:
    """Return whether H is positive semidefinite, up to rounding."""
    values = np.linalg.eigvalsh(H / (float(np.abs(H).max(initial=0.0)) or 1.0))  # squares may overflow
    return bool(values[0] >= -1e-10 * float(np.abs(values).max()))


def least_sine(H: Vector) -> float:
    """Return the least sine of a variable's angle to those before it; 0 if H is not positive definite."""
    unit = unit_scales(H.diagonal())
    with suppress(np.linalg.LinAlgError):
        return float(np.linalg.cholesky(H / unit / unit[:, None]).diagonal().min(initial=1.0))
    return 0.0


@dataclass(frozen=True)
class Active:
    """Masks of the constraints that hold as equations: variables at a bound, rows of G."""

    at_lower: Vector
    at_upper: Vector
    rows: Vector

    @classmethod
    def none(cls, n: int, rows: int) -> Active:
        """Return empty masks for n variables and `rows` rows."""
        return cls(np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.zeros(rows, dtype=bool))


Guess = Active | None  # the active set to start from


@dataclass(frozen=True)
class Solution:
    """The optimum and its multipliers."""

    x: Vector
    bound_multipliers: Vector  # Hx + c + Eᵀλ + Gᵀμ: > 0 at an active lower bound, < 0 at an active upper one
    row_multipliers: Vector  # μ, one per row of G, ≥ 0
    equation_multipliers: Vector  # λ, one per row of E
    active: Active
    shift: float = 0.0  # multiplier of a ball, with ½·shift·(‖x‖² − radius²) in the Lagrangian: H becomes H + shift·I
    radius: float = 0.0

    @classmethod
    def without_multipliers(cls, x: Vector, rows: int = 0) -> Solution:
        """Return a point without multipliers."""
        return cls(x, np.zeros(x.size), np.zeros(rows), np.zeros(0), Active.none(x.size, rows))


def primal_dual_active_set(
    objective: Objective | None, c: Vector, linear: Linear, active: Active, rounds: int = ROUNDS
) -> Solution | None:
    """Return the optimum reached from a guess of the active set, or None if this cycles; no objective means H = I."""
    for _ in range(rounds):
        found, gradient = _on_active(objective, c, linear, active)
        x, price = found.x, found.bound_multipliers
        if not np.isfinite(x).all():
            return None
        free = ~(active.at_lower | active.at_upper)
        scale = max(float(np.abs(c).max(initial=0.0)), float(np.abs(gradient).max(initial=0.0)))
        if np.abs(price[free]).max(initial=0.0) > 1e-6 * scale:
            return None  # a slope along a flat direction: there is no optimum on this face
        largest, cheap = float(np.abs(x).max(initial=0.0)), TINY * scale
        enter_low, enter_high = linear.lower - x > TINY * largest, x - linear.upper > TINY * largest
        terms = np.maximum(np.abs(linear.h), np.abs(linear.G) @ np.abs(x))  # a row may have small entries of x only
        enter_rows = linear.G @ x - linear.h > np.maximum(TINY * terms, DUST * largest)
        leave_low, leave_high = active.at_lower & (price < -cheap), active.at_upper & (price > cheap)
        leave_rows = active.rows & (found.row_multipliers < -cheap)
        if not any(change.any() for change in (enter_low, enter_high, enter_rows, leave_low, leave_high, leave_rows)):
            return found
        at_upper = (active.at_upper & ~leave_high) | (enter_high & ~enter_low)
        active = Active((active.at_lower & ~leave_low) | enter_low, at_upper, (active.rows & ~leave_rows) | enter_rows)
    return None


def _on_active(objective: Objective | None, c: Vector, linear: Linear, active: Active) -> tuple[Solution, Vector]:
    """Return the optimum with the active constraints as equations, and the gradient there."""
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, 0.0))
    free = ~(active.at_lower | active.at_upper)
    M = np.vstack([linear.E, linear.G[active.rows]])
    right = np.concatenate([linear.f, linear.h[active.rows]]) - M[:, ~free] @ x[~free]
    if objective is None:
        prices = solve_symmetric(M[:, free] @ M[:, free].T, -M[:, free] @ c[free] - right)
        x[free] = -c[free] - M[:, free].T @ prices
        gradient = x + c
    else:
        x[free], prices = objective.on(free, x).minimum_under(M[:, free], right)
        gradient = objective.gradient(x)
    row_multipliers = np.zeros(linear.h.size)
    row_multipliers[active.rows] = prices[linear.f.size :]
    return Solution(x, gradient + M.T @ prices, row_multipliers, prices[: linear.f.size], active), gradient


def primal_active_set(objective: Objective, linear: Linear, x: Vector) -> Solution | None:
    """Return the optimum reached from a feasible x; None if rounding prevents the end."""
    n, eye = x.size, np.eye(x.size)
    low, high = np.flatnonzero(np.isfinite(linear.lower)), np.flatnonzero(np.isfinite(linear.upper))
    rows = np.vstack([linear.G, -eye[low], eye[high]])
    right = np.concatenate([linear.h, -linear.lower[low], linear.upper[high]])
    working: list[int] = []
    for turn in range(20 * (n + right.size) + 50):
        M = np.vstack([linear.E, rows[working]])
        step, unbounded = _step(objective, x, M)
        if step is None:
            prices = least_squares(M.T, -objective.gradient(x)) if M.size else np.zeros(len(M))
            own = prices[linear.f.size :]
            wrong = np.flatnonzero(own < -TINY * float(np.abs(objective.gradient(x)).max(initial=0.0)))
            if not wrong.size:
                break
            late = turn > 10 * n + 25  # Bland's rule, which has no cycles
            working.pop(int(wrong[0]) if late else int(wrong[np.argmin(own[wrong])]))
            continue
        rate = rows @ step
        rate[working] = 0.0
        ahead = np.flatnonzero(rate > 1e-12 * np.abs(rows).max(axis=1, initial=0.0) * np.abs(step).max())
        room = np.maximum(right[ahead] - rows[ahead] @ x, 0.0) / rate[ahead]
        length = float(room.min(initial=np.inf if unbounded else 1.0))
        if np.isinf(length):
            raise UnboundedError("the quadratic program falls without end")
        x = x + length * step
        if room.size and length == room.min():
            working.append(int(ahead[np.argmin(room)]))
    else:
        return None
    held, price = np.zeros(right.size, dtype=bool), np.zeros(right.size)
    held[working], price[working] = True, own
    active, (q, mid) = Active.none(n, linear.h.size), (linear.h.size, linear.h.size + low.size)
    active.rows[:], active.at_lower[low], active.at_upper[high] = held[:q], held[q:mid], held[mid:]
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, x))
    bound_multipliers = objective.gradient(x) + linear.E.T @ prices[: linear.f.size] + linear.G.T @ price[:q]
    return Solution(x, bound_multipliers, price[:q], prices[: linear.f.size], active)


def _step(objective: Objective, x: Vector, M: Vector) -> tuple[Vector | None, bool]:
    """Return the step with the rows of M held, and whether φ is unbounded along it; None at the minimum."""
    along = null_space(M) if M.size else np.eye(x.size)
    gradient = objective.gradient(x)
    terms = float((np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)).max(initial=0.0))
    pull = along.T @ gradient
    if not pull.size or float(np.abs(pull).max()) <= 1e-13 * terms:
        return None, False
    if objective.R is not None:
        _, sizes, vectors = svd(objective.R @ along)
        curvature = np.zeros(pull.size)
        curvature[: sizes.size] = sizes**2
        flat, vectors = curvature <= (1e-15 * float(sizes.max(initial=0.0))) ** 2, vectors.T
    else:
        curvature, vectors = np.linalg.eigh(along.T @ objective.H @ along)
        flat = curvature <= FLAT * x.size * float(np.abs(objective.H).max())
    parts = vectors.T @ pull
    if objective.R is None and float(np.abs(parts[flat]).max(initial=0.0)) > PULL * terms:
        return -along @ (vectors[:, flat] @ parts[flat]), True
    step = -along @ (vectors[:, ~flat] @ (parts[~flat] / curvature[~flat]))
    return (None, False) if float(np.abs(step).max(initial=0.0)) <= 1e-15 * float(np.abs(x).max()) else (step, False)


def solve_qp(objective: Objective, linear: Linear, guess: Guess = None, near: Vector | None = None) -> Solution:
    """Return the minimum over the polyhedron.

    Raise `InfeasibleError` if it is empty, `UnboundedError` if there is no minimum, `UndecidedError` if rounding
    decides. A guess of the active constraints, from a neighbouring problem, often saves the interior-point solve; a
    feasible point `near` saves a linear program. Everything is scaled to size 1 first: variables to a unit diagonal of
    H, rows to a largest entry of 1, and all by the likely size of x.
    """
    if linear.equations_only:
        found = _under_equations(objective, linear)
        if found is not None:
            return found
    unit = unit_scales(np.diag(objective.H))
    objective = objective.scaled(unit)
    G, h, by_G = unit_rows(linear.G / unit, linear.h)
    E, f, by_E = unit_rows(linear.E / unit, linear.f)
    low, high = linear.lower * unit, linear.upper * unit
    scale = _likely_size(objective.c, Linear(low, high, G, h, E, f))
    scaled = Linear(low / scale, high / scale, G, h / scale, E, f / scale)

    def some_point() -> Vector:
        point = near if near is not None and linear.broken(near) <= MET else feasible_point(linear)
        return np.asarray(point * unit / scale)

    q = None if objective.q is None else objective.q * (1 / scale)
    objective = replace(objective, c=objective.c * (1 / scale), q=q)  # a function of x/scale, divided by scale²
    found = _solve_scaled(objective, scaled, guess, some_point)
    x = np.clip(found.x * scale / unit, linear.lower, linear.upper)
    rows, equations = scale * found.row_multipliers / by_G, scale * found.equation_multipliers / by_E
    return Solution(x, scale * unit * found.bound_multipliers, rows, equations, found.active)


def _under_equations(objective: Objective, linear: Linear) -> Solution | None:
    """Return the optimum under equations only, from one linear system; None if its solution is no optimum."""
    n, unit = objective.c.size, unit_scales(np.diag(objective.H))
    E, f, by_E = unit_rows(linear.E / unit, linear.f)
    scaled = objective.scaled(unit)
    x, price = scaled.minimum_under(E, f)
    gradient = scaled.gradient(x) + E.T @ price
    terms = np.abs(scaled.H) @ np.abs(x) + np.abs(scaled.c) + np.abs(E.T) @ np.abs(price)
    if not np.abs(gradient).max() <= STATIONARY * terms.max() or not np.isfinite(x).all():
        return None
    x = x / unit
    found = Solution(x, np.zeros(n), np.zeros(0), price / by_E, Active.none(n, 0))
    return found if linear.broken(x) <= TRUSTED else None


def _likely_size(c: Vector, linear: Linear) -> float:
    """Return the likely size of x: what constraints require, else what c or the constraints allow."""
    apart = linear.f, linear.h[linear.h < 0], linear.lower[linear.lower > 0], linear.upper[linear.upper < 0]
    sides = (np.concatenate(apart), np.concatenate([*apart, linear.h, linear.lower, linear.upper]), c)
    required, allowed, slope = (float(np.abs(side[np.isfinite(side)]).max(initial=0.0)) for side in sides)
    return max(required, min((size for size in (slope, allowed) if size > 0), default=0.0)) or 1.0


def _solve_scaled(objective: Objective, linear: Linear, guess: Active | None, start: Callable[[], Vector]) -> Solution:
    if not _rows_satisfiable(linear):
        raise InfeasibleError("an equation or inequality cannot be met within the bounds")

    def candidates() -> Iterator[Solution | None]:
        if guess is not None:
            yield from_active(guess, GUESS_ROUNDS)
        active = _interior_point(objective, linear)
        if active is not None:
            yield from_active(active, ROUNDS)
        yield primal_active_set(objective, linear, np.clip(start(), linear.lower, linear.upper))
        # a feasible point at far bounds rounds away what matters near 0
        yield from_active(Active.none(objective.c.size, linear.h.size), ROUNDS)

    def from_active(active: Active, rounds: int) -> Solution | None:
        found = primal_dual_active_set(objective, objective.c, linear, active, rounds)
        return None if found is None or _may_be_unbounded(objective, found.x) else found

    for found in candidates():
        if found is not None:
            for cleaned in (None, _without_dust, _on_active_rows):
                clean = found if cleaned is None else cleaned(found, linear)
                if _acceptable(objective, linear, clean):
                    return clean
    raise UndecidedError("no optimum of the quadratic program could be found to rounding")


def _may_be_unbounded(objective: Objective, x: Vector) -> bool:
    """Return whether φ clearly decreases towards x by its slope while the curvature in that direction is rounding."""
    H, c, size = objective.H, objective.c, np.abs(x)
    if objective.R is not None or not float(c @ x) < -PULL * float(np.abs(c) @ size):
        return False
    return float(x @ H @ x) <= FLAT * x.size * float(size @ np.abs(H) @ size)


def _without_dust(found: Solution, linear: Linear) -> Solution:
    """Set entries that are rounding to 0: at the tip of a cone they violate each row by as much as its terms."""
    return replace(found, x=np.where(np.abs(found.x) <= DUST, np.clip(0.0, linear.lower, linear.upper), found.x))


def _on_active_rows(found: Solution, linear: Linear) -> Solution:
    """Satisfy the active rows again, by variables between their bounds: the rounding of many steps adds up."""
    M = np.vstack([linear.E, linear.G[found.active.rows]])
    x = np.clip(found.x, linear.lower, linear.upper)
    gap = np.concatenate([linear.f, linear.h[found.active.rows]]) - M @ x
    moved = _moved_onto(M, gap, x, (found.x > linear.lower) & (found.x < linear.upper))
    return found if moved is None else replace(found, x=moved)


def _moved_onto(M: Vector, gap: Vector, x: Vector, inside: Vector) -> Vector | None:
    """Return x with the shortest change d of the variables `inside` for which Md = gap; None if there is none."""
    if not gap.size or not inside.any():
        return None
    x = x.copy()
    x[inside] += least_squares(M[:, inside], gap)
    return x


def _acceptable(objective: Objective, linear: Linear, found: Solution) -> bool:
    """Return whether a solution is feasible, and no multiplier has the wrong sign."""
    x = np.clip(found.x, linear.lower, linear.upper)
    if not np.isfinite(found.x).all() or linear.broken(x) > TRUSTED:
        return False
    size = np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)
    size = size + np.abs(linear.E.T) @ np.abs(found.equation_multipliers)
    size = size + np.abs(linear.G.T) @ np.abs(found.row_multipliers)
    price = found.bound_multipliers
    free = np.where((price < 0) & (x < linear.upper) | (price > 0) & (x > linear.lower), price, 0.0)
    wrong = max(float(np.abs(free).max(initial=0.0)), -float(found.row_multipliers.min(initial=0.0)))
    return wrong <= STATIONARY * float(size.max(initial=0.0))


def _rows_satisfiable(linear: Linear) -> bool:
    """Return whether each row alone can be satisfied within the bounds: a cheap test for most infeasible problems."""
    for M, v, equation in ((linear.E, linear.f, True), (linear.G, linear.h, False)):
        ends = np.stack(activity_terms(M, linear.lower, linear.upper))
        least, most = ends.sum(axis=2)
        terms = np.where(np.isfinite(ends), np.abs(ends), 0.0).max(axis=0).sum(axis=1)
        slack = TRUSTED * np.maximum(np.abs(v), terms)
        if (least > v + slack).any() or (equation and (most < v - slack).any()):
            return False
    return True


def project_polyhedron(u: Vector, linear: Linear, guess: Guess) -> Solution:
    """Return the nearest point, by the active-set method with H = I, whose systems are as small as the active rows."""
    identity = Objective(np.eye(u.size), -u)
    found = None if guess is None else primal_dual_active_set(None, -u, linear, guess)
    return found if found is not None and _acceptable(identity, linear, found) else solve_qp(identity, linear)


def _interior_point(objective: Objective, linear: Linear) -> Active | None:
    """Return the constraints that are active at PIQP's solution; None if it finds none."""
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-9
    solver.settings.max_iter = 100
    E, f = (np.asfortranarray(linear.E), linear.f) if linear.f.size else (None, None)
    near = linear.h < FAR  # PIQP rejects larger right-hand sides
    G, h = (np.asfortranarray(linear.G[near]), linear.h[near]) if near.any() else (None, None)
    lower = np.where(linear.lower > -FAR, linear.lower, -np.inf)
    upper = np.where(linear.upper < FAR, linear.upper, np.inf)
    size = max(1.0, float(np.abs(objective.c).max(initial=0.0)))  # PIQP fails for a c that is large relative to bounds
    solver.setup(np.asfortranarray(objective.H / size), objective.c / size, E, f, G, None, h, lower, upper)
    solver.solve()
    found = solver.result
    x, low, high = np.array(found.x), np.array(found.z_bl), np.array(found.z_bu)
    if not np.isfinite(x).all() or linear.broken(x) > OFF:  # the polyhedron may be empty: linear programming decides
        return None
    row_multipliers = np.zeros(linear.h.size)
    row_multipliers[near] = np.array(found.z_u) if near.any() else 0.0
    at_lower = (low > np.abs(x - linear.lower)) & np.isfinite(linear.lower)
    at_upper = (high > np.abs(linear.upper - x)) & np.isfinite(linear.upper) & ~at_lower
    return Active(at_lower, at_upper, row_multipliers > np.abs(linear.h - linear.G @ x))


def feasible_point(linear: Linear) -> Vector:
    """Return a point of the polyhedron to rounding, by linear programming; for bounds alone, the nearest to 0."""
    if not (linear.h.size or linear.f.size):
        return np.asarray(np.clip(0.0, linear.lower, linear.upper))
    (G, h, _), (E, f, _) = unit_rows(linear.G, linear.h), unit_rows(linear.E, linear.f)
    linear, bounds = replace(linear, G=G, h=h, E=E, f=f), np.column_stack([linear.lower, linear.upper])
    found = linear_program(np.zeros(linear.lower.size), linear, lambda M: M, bounds)
    if found is None:
        raise InfeasibleError("linear programming proves that no point meets every constraint")
    x = np.clip(found, linear.lower, linear.upper)
    for _ in range(4):  # HiGHS satisfies rows to 1e-7: satisfy exactly those that are violated or nearly so
        if linear.broken(x) <= MET:
            return x
        near = G @ x - h > -1e-7 * np.maximum(np.abs(x).max(initial=0.0), np.abs(h))
        gap = np.concatenate([f - E @ x, h[near] - G[near] @ x])
        moved = _moved_onto(np.vstack([E, G[near]]), gap, x, (x > linear.lower) & (x < linear.upper))
        if moved is None:
            break
        x = np.clip(moved, linear.lower, linear.upper)
    if linear.broken(x) > TRUSTED:
        raise UndecidedError("linear programming finds a point, but none that meets every constraint to rounding")
    return x


def linear_program(cost: Vector, linear: Linear, widen: Callable[[Vector], Vector], bounds: Vector) -> Vector | None:
    """Return a minimiser of costᵀx by HiGHS, None if it proves there is none; `widen` adds columns to the rows.

    HiGHS has absolute tolerances and drops small entries: columns (by powers of 2), rows and sides are scaled to 1.
    """
    from scipy.optimize import linprog  # slow to import

    (G, h, _), (E, f, _) = unit_rows(linear.G, linear.h), unit_rows(linear.E, linear.f)
    G, E = widen(G), widen(E)
    largest = np.abs(np.vstack([G, E])).max(axis=0, initial=0.0)
    unit = np.exp2(-np.round(np.log2(np.where(largest > 0, largest, 1.0))))
    (G, h, _), (E, f, _) = unit_rows(G * unit, h), unit_rows(E * unit, f)
    bounds = bounds / unit[:, None]
    sides = [side for side in (h, f, bounds[np.isfinite(bounds)]) if side.any()]
    scale = float(np.abs(sides[0]).max()) if sides else 1.0
    rows = {"A_ub": G, "b_ub": h / scale} if h.size else {}
    rows |= {"A_eq": E, "b_eq": f / scale} if f.size else {}
    found = linprog(cost * unit, **rows, bounds=bounds / scale, method="highs")
    if found.status == 2:
        return None
    if found.x is None:
        raise UndecidedError(f"linear programming could not decide whether there is a point: {found.message}")
    return np.asarray(found.x * scale * unit)
