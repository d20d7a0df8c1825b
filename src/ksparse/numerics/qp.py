"""Small convex quadratic programs over a polyhedron, solved to rounding.

An interior-point solution is off by its tolerance: a weight of 1e-9 where 0 is meant, a budget of 0.999999999. So PIQP only guesses the
active constraints, and linear algebra makes the solution exact. What is returned has been checked: feasible to the rounding of each
constraint's own terms, with multipliers of the right sign. Where that fails, linear programming decides whether there is a feasible
point, and a primal active-set method starts from one.

`exchanged` goes from one guess of the active set to the next by all violated constraints and all multipliers of the wrong sign at once: a
few solves where the guess is near, but it may cycle. `descended` is the primal active-set method, one constraint at a time: slow, and it
ends at the optimum or on a ray along which the objective is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import piqp

from ksparse.errors import InfeasibleError, UnboundedError, UndecidedError
from ksparse.numerics.constraints import Linear, contributions, unit_constraints, unit_rows, unit_scales
from ksparse.util.arrays import Vector

REGULAR = 1e-3  # the sine of a variable's angle to those before it, above which one system is enough


DEPENDENT = 1e-4  # the sine of a column's angle to those before it, below which H = AᵀA is too coarse


@dataclass(frozen=True)
class Objective:
    """½xᵀHx + cᵀx, H symmetric. It need not be positive semidefinite: `Polished` and `faces` minimise indefinite ones over bounded sets.

    Where φ is a sum of squares ½‖Rx − q‖² its root R comes along: H = RᵀR has the square of R's condition, and near-dependent columns lose
    twice as many digits by it.
    """

    H: Vector
    c: Vector
    R: Vector | None = None
    q: Vector | None = None
    rest: float = 0.0  # φ = ½‖Rx − q‖² + ½·rest²

    @classmethod
    def of_squares(cls, R: Vector, q: Vector, rest: float) -> Self:
        """½‖Rx − q‖² + ½·rest², less what x does not change."""
        return cls(R.T @ R, -(R.T @ q), R, q, rest)

    @cached_property
    def independence(self) -> float:
        """How far H is from dependent variables, see `least_sine`."""
        return least_sine(self.H)

    @property
    def well_conditioned(self) -> bool:
        """Whether no variable is nearly a combination of those before it."""
        return self.independence > DEPENDENT

    def gradient(self, x: Vector) -> Vector:
        """Hx + c."""
        if self.R is None or self.q is None:
            return np.asarray(self.H @ x + self.c)
        return np.asarray(self.R.T @ (self.R @ x - self.q))

    def value(self, x: Vector) -> float:
        """½xᵀHx + cᵀx."""
        return float(0.5 * x @ self.H @ x + self.c @ x)

    def terms(self, x: Vector) -> float:
        """The size of what is added up in `value`, its rounding unit."""
        size = np.abs(x)
        return float(size @ np.abs(self.H) @ size + np.abs(self.c) @ size)

    def scaled(self, unit: Vector) -> Objective:
        """The same in the variables unit·x."""
        R = None if self.R is None else self.R / unit
        return Objective(self.H / unit / unit[:, None], self.c / unit, R, self.q)

    def rescaled(self, factor: float) -> Objective:
        """Return factor²·φ(y/factor) as a function of y = factor·x, for factor > 0: H stays, c is multiplied by the factor."""
        return Objective(self.H, self.c * factor, self.R, None if self.q is None else self.q * factor)

    def on(self, free: Vector, fixed: Vector) -> Objective:
        """As a function of the free variables, the others fixed to their entries in `fixed`."""
        c = self.c[free] + self.H[np.ix_(free, ~free)] @ fixed[~free]
        if self.R is None or self.q is None:
            return Objective(self.H[np.ix_(free, free)], c)
        return Objective(self.H[np.ix_(free, free)], c, self.R[:, free], self.q - self.R[:, ~free] @ fixed[~free])

    def minimum_under(self, M: Vector, right: Vector) -> tuple[Vector, Vector]:
        """The least-squares solution x, λ of Hx + c + Mᵀλ = 0, Mx = right; from the root, where there is one, without forming H."""
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
    """−H⁻¹c where H is positive definite beyond doubt; None where it may not be, or a root is to be used."""
    if objective.R is not None or not objective.independence > REGULAR:
        return None
    unit = unit_scales(objective.H.diagonal())
    H, d = objective.H / unit / unit[:, None], -objective.c / unit
    x = np.linalg.solve(H, d)
    return np.asarray((x + np.linalg.solve(H, d - H @ x)) / unit)


def least_squares(M: Vector, d: Vector) -> Vector:
    """The shortest x of least ‖Mx − d‖, in columns of length 1, once refined."""
    size = np.sqrt(np.einsum("ij,ij->j", M, M))
    size[size == 0] = 1.0
    unit = M / size
    x = shortest(unit, d)
    return np.asarray((x + shortest(unit, d - unit @ x)) / size)


def shortest(M: Vector, d: Vector, rcond: float | None = None) -> Vector:
    """Return the shortest x of least ‖Mx − d‖.

    LAPACK's divide-and-conquer SVD fails to converge on some ordinary matrices. Pivoted QR then takes its place: it has no iterations.
    """
    try:
        return np.asarray(np.linalg.lstsq(M, d, rcond=rcond)[0])
    except np.linalg.LinAlgError:
        from scipy.linalg import lstsq  # here, as this is rare

        cond = np.finfo(np.float64).eps * max(M.shape) if rcond is None else rcond
        return np.asarray(lstsq(M, d, cond=cond, lapack_driver="gelsy", check_finite=False)[0])


def svd(M: Vector, full_matrices: bool = True) -> tuple[Vector, Vector, Vector]:
    """Return U, the singular values and Vᵀ; by QR iterations where LAPACK's divide and conquer does not converge."""
    try:
        return np.linalg.svd(M, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd as by_scipy

        U, sizes, rows = by_scipy(M, full_matrices=full_matrices, lapack_driver="gesvd", check_finite=False)
        return U, sizes, rows


def null_space(M: Vector) -> Vector:
    """An orthonormal basis of the solutions of Mx = 0, for rows of size 1."""
    _, sizes, rows = svd(M)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0)).sum())
    return np.asarray(rows[rank:].T)


def solve_symmetric(K: Vector, d: Vector) -> Vector:
    """K⁻¹d with one step of refinement; the least-squares answer where K is singular.

    NumPy's linear algebra, here and in the search: where SciPy brings a BLAS of its own, the threads of the two wait for each other.
    """
    if not d.size:
        return d
    try:
        u = np.linalg.solve(K, d)
        if float(np.abs(u).max()) * float(np.abs(K).max()) < 1e13 * max(float(np.abs(d).max()), 1e-300):
            return np.asarray(u + np.linalg.solve(K, d - K @ u))
    except np.linalg.LinAlgError:
        pass
    return shortest(K, d, rcond=1e-13)


def convex(H: Vector) -> bool:
    """Whether H is positive semidefinite, up to rounding."""
    values = np.linalg.eigvalsh(H / (float(np.abs(H).max(initial=0.0)) or 1.0))  # squares may overflow
    return bool(values[0] >= -1e-10 * float(np.abs(values).max()))


def least_sine(H: Vector) -> float:
    """The sine of a variable's angle to those before it, the least, in variables of unit curvature; 0 where H is not positive definite."""
    unit = unit_scales(H.diagonal())
    try:
        return float(np.linalg.cholesky(H / unit / unit[:, None]).diagonal().min(initial=1.0))
    except np.linalg.LinAlgError:
        return 0.0


ROUNDS = 30  # of exchanges


TINY = 1e-11  # of a constraint's terms: broken by less is rounding


DUST = 1e-14  # of the largest entry of x: less is rounding


FLAT = 1e-15  # of the largest curvature, for each variable: less is rounding


PULL = 1e-9  # of the gradient's terms: less does not move along a flat direction


@dataclass(frozen=True)
class Active:
    """Which constraints hold as equations: variables at a bound, rows of G."""

    at_lower: Vector
    at_upper: Vector
    rows: Vector

    @classmethod
    def none(cls, n: int, rows: int) -> Active:
        """Not one, of n variables and so many rows."""
        return cls(np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.zeros(rows, dtype=bool))


@dataclass(frozen=True)
class Solution:
    """The optimum and its multipliers."""

    x: Vector
    bound_price: Vector  # Hx + c + rowsᵀλ: > 0 at an active lower bound, < 0 at an active upper one
    row_price: Vector  # one per row of G, ≥ 0
    equation_price: Vector  # one per row of E
    active: Active
    shift: float = (
        0.0  # price of a ball: the Lagrangian has ½·shift·(‖x‖² − radius²) in it, so that H + shift·I is what is felt
    )
    radius: float = 0.0

    @classmethod
    def unpriced(cls, x: Vector, rows: int = 0) -> Solution:
        """A point of which nothing more is known."""
        return cls(x, np.zeros(x.size), np.zeros(rows), np.zeros(0), Active.none(x.size, rows))


def exchanged(
    objective: Objective | None, c: Vector, linear: Linear, active: Active, rounds: int = ROUNDS
) -> Solution | None:
    """The optimum reached by exchanging constraints from a guess, or None where that cycles; no objective means H = I."""
    for _ in range(rounds):
        found, gradient = _on_active(objective, c, linear, active)
        x, price = found.x, found.bound_price
        if not np.isfinite(x).all():
            return None
        free = ~(active.at_lower | active.at_upper)
        pull = max(
            float(np.abs(c).max(initial=0.0)), float(np.abs(gradient).max(initial=0.0))
        )  # what the prices are made of
        if np.abs(price[free]).max(initial=0.0) > 1e-6 * pull:
            return None  # no curvature and still a pull: there is no optimum on this face
        tiny, cheap = TINY * float(np.abs(x).max(initial=0.0)), TINY * pull
        enter_low, enter_high = linear.lower - x > tiny, x - linear.upper > tiny
        terms = np.maximum(
            np.abs(linear.h), np.abs(linear.G) @ np.abs(x)
        )  # a row on small entries of x knows nothing of the large ones
        enter_rows = linear.G @ x - linear.h > np.maximum(TINY * terms, DUST * float(np.abs(x).max(initial=0.0)))
        leave_low, leave_high = active.at_lower & (price < -cheap), active.at_upper & (price > cheap)
        leave_rows = active.rows & (found.row_price < -cheap)
        if not any(change.any() for change in (enter_low, enter_high, enter_rows, leave_low, leave_high, leave_rows)):
            return found
        active = Active(
            (active.at_lower & ~leave_low) | enter_low,
            (active.at_upper & ~leave_high) | (enter_high & ~enter_low),
            (active.rows & ~leave_rows) | enter_rows,
        )
    return None


def _on_active(objective: Objective | None, c: Vector, linear: Linear, active: Active) -> tuple[Solution, Vector]:
    """The optimum with the active constraints as equations, and the gradient there."""
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
    row_price = np.zeros(linear.h.size)
    row_price[active.rows] = prices[linear.f.size :]
    return Solution(x, gradient + M.T @ prices, row_price, prices[: linear.f.size], active), gradient


def descended(objective: Objective, linear: Linear, x: Vector) -> Solution | None:
    """The optimum by the primal active-set method from a feasible x; None where rounding keeps it from ending."""
    rows, right, side = _as_rows(linear)
    working: list[int] = []
    for turn in range(20 * (x.size + right.size) + 50):
        M = np.vstack([linear.E, rows[working]])
        step, endless = _step(objective, x, M)
        if step is None:
            prices = least_squares(M.T, -objective.gradient(x)) if M.size else np.zeros(len(M))
            own = prices[linear.f.size :]
            wrong = np.flatnonzero(own < -TINY * float(np.abs(objective.gradient(x)).max(initial=0.0)))
            if not wrong.size:
                return _solution(objective, linear, x, working, prices, side)
            working.pop(
                int(wrong[0]) if turn > 10 * x.size + 25 else int(wrong[np.argmin(own[wrong])])
            )  # late: Bland's rule, no cycles
            continue
        rate = rows @ step
        rate[working] = 0.0
        ahead = np.flatnonzero(rate > 1e-12 * np.abs(rows).max(axis=1, initial=0.0) * np.abs(step).max())
        room = np.maximum(right[ahead] - rows[ahead] @ x, 0.0) / rate[ahead]
        length = float(room.min(initial=np.inf if endless else 1.0))
        if np.isinf(length):
            raise UnboundedError("the quadratic program falls without end")
        x = x + length * step
        if room.size and length == room.min():
            working.append(int(ahead[np.argmin(room)]))
    return None


def _step(objective: Objective, x: Vector, M: Vector) -> tuple[Vector | None, bool]:
    """Where to go with the rows of M held: to the minimum there, or along a flat direction that falls (then without end); None: nowhere."""
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


def _as_rows(linear: Linear) -> tuple[Vector, Vector, list[tuple[str, int]]]:
    """Every inequality as a row, its right-hand side, and what it is."""
    n, eye = linear.lower.size, np.eye(linear.lower.size)
    low, high = np.flatnonzero(np.isfinite(linear.lower)), np.flatnonzero(np.isfinite(linear.upper))
    side = (
        [("row", i) for i in range(linear.h.size)] + [("low", int(i)) for i in low] + [("high", int(i)) for i in high]
    )
    rows = np.vstack([linear.G.reshape(-1, n), -eye[low], eye[high]])
    return rows, np.concatenate([linear.h, -linear.lower[low], linear.upper[high]]), side


def _solution(
    objective: Objective, linear: Linear, x: Vector, working: list[int], prices: Vector, side: list[tuple[str, int]]
) -> Solution:
    """The optimum as `exchanged` gives it."""
    active = Active.none(x.size, linear.h.size)
    row_price = np.zeros(linear.h.size)
    for price, place in zip(prices[linear.f.size :], working, strict=True):
        kind, i = side[place]
        if kind == "row":
            active.rows[i], row_price[i] = True, price
        else:
            (active.at_lower if kind == "low" else active.at_upper)[i] = True
    x = np.where(active.at_lower, linear.lower, np.where(active.at_upper, linear.upper, x))
    equation_price = prices[: linear.f.size]
    bound_price = objective.gradient(x) + linear.E.T @ equation_price + linear.G.T @ row_price
    return Solution(x, bound_price, row_price, equation_price, active)


TRUSTED = 1e-9  # of a constraint's terms: broken by more, an answer is refused


MET = 1e-13  # of a constraint's terms: broken by no more, it is met


GUESS_ROUNDS = 3  # of exchanges from a neighbour's constraints: more cost as much as the interior-point solve that they were to save


OFF = 1e-3  # of a constraint's terms: broken by more, an interior-point answer is none


FAR = 1e20  # a right-hand side beyond this, where x is of size 1, does not matter


STATIONARY = 1e-9  # of the gradient's terms: pulled by more, a point is no optimum


def solve_qp(objective: Objective, linear: Linear, guess: Active | None = None, near: Vector | None = None) -> Solution:
    """The minimum over the polyhedron.

    `InfeasibleError` where there is no point, `UnboundedError` with no minimum, `UndecidedError` where arithmetic cannot tell. A guess of
    the active constraints, from a neighbouring problem, often saves the interior-point solve; a point `near` that meets them all saves the
    linear program before the slow way. Everything is scaled to size 1 first:
    variables to a unit diagonal of H, rows to largest entry 1, and the whole by how far x is pulled or held.
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
    scale = _reach(objective.c, Linear(low, high, G, h, E, f))
    scaled = Linear(low / scale, high / scale, G, h / scale, E, f / scale)

    def some_point() -> Vector:
        met = near is not None and linear.broken(near) <= MET
        return np.asarray((near if met and near is not None else feasible_point(linear)) * unit / scale)

    found = _solve_scaled(objective.rescaled(1 / scale), scaled, guess, some_point)
    x = np.clip(found.x * scale / unit, linear.lower, linear.upper)
    return Solution(
        x, scale * unit * found.bound_price, scale * found.row_price / by_G, scale * found.equation_price / by_E, found.active
    )  # fmt: skip


def _under_equations(objective: Objective, linear: Linear) -> Solution | None:
    """One linear system, where nothing else is asked for; None where its solution is no optimum."""
    n, unit = objective.c.size, unit_scales(np.diag(objective.H))
    E, f, by_E = unit_rows(linear.E / unit, linear.f)
    scaled = objective.scaled(unit)
    x, price = scaled.minimum_under(E, f)
    pull = scaled.gradient(x) + E.T @ price
    terms = np.abs(scaled.H) @ np.abs(x) + np.abs(scaled.c) + np.abs(E.T) @ np.abs(price)
    if not np.abs(pull).max() <= STATIONARY * terms.max() or not np.isfinite(x).all():
        return None
    x = x / unit
    return (
        Solution(x, np.zeros(n), np.zeros(0), price / by_E, Active.none(n, 0)) if linear.broken(x) <= TRUSTED else None
    )


def _reach(c: Vector, linear: Linear) -> float:
    """How large x is likely to be: as constraints that exclude 0 make it; else as it is pulled or held, whichever is less."""
    apart = [linear.f, linear.h[linear.h < 0], linear.lower[linear.lower > 0], linear.upper[linear.upper < 0]]
    held = [*apart, linear.h, linear.lower, linear.upper]
    driven, held_at, pulled = (
        max(float(np.abs(side[np.isfinite(side)]).max(initial=0.0)) for side in sides) for sides in (apart, held, [c])
    )
    return max(driven, min((size for size in (pulled, held_at) if size > 0), default=0.0)) or 1.0


def _solve_scaled(
    objective: Objective, linear: Linear, guess: Active | None, some_point: Callable[[], Vector]
) -> Solution:
    if not _rows_in_reach(linear):
        raise InfeasibleError("an equation or inequality cannot be met within the bounds")

    def from_guess() -> Solution | None:
        return None if guess is None else exchanged(objective, objective.c, linear, guess, GUESS_ROUNDS)

    def from_interior_point() -> Solution | None:
        rough = _interior_point(objective, linear)
        return None if rough is None else exchanged(objective, objective.c, linear, rough)

    def from_some_point() -> Solution | None:
        return descended(objective, linear, np.clip(some_point(), linear.lower, linear.upper))

    for way in (from_guess, from_interior_point, from_some_point):
        found = way()
        if found is None or (way is not from_some_point and _stopped_by_rounding(objective, found.x)):
            continue  # whether anything stops x there, the slow way decides
        for clean in (found, _swept(found, linear), _met(found, linear)):
            if _acceptable(objective, linear, clean):
                return clean
    raise UndecidedError("no optimum of the quadratic program could be found to rounding")


def _stopped_by_rounding(objective: Objective, x: Vector) -> bool:
    """Whether φ falls clearly on the way to x by its slope, and all the curvature on that way is rounding: there may be no end to it."""
    H, c, size = objective.H, objective.c, np.abs(x)
    if objective.R is not None or not float(c @ x) < -PULL * float(np.abs(c) @ size):
        return False
    return float(x @ H @ x) <= FLAT * x.size * float(size @ np.abs(H) @ size)


def _swept(found: Solution, linear: Linear) -> Solution:
    """What is rounding, in units of size 1, as 0: at the tip of a cone all of x is, and breaks each row by as much as the row's terms."""
    return replace(found, x=np.where(np.abs(found.x) <= DUST, np.clip(0.0, linear.lower, linear.upper), found.x))


def _met(found: Solution, linear: Linear) -> Solution:
    """The active rows met again, by the variables that have room: many steps, each rounded, drift away from them."""
    M, right = (
        np.vstack([linear.E, linear.G[found.active.rows]]),
        np.concatenate([linear.f, linear.h[found.active.rows]]),
    )
    x, room = np.clip(found.x, linear.lower, linear.upper), (found.x > linear.lower) & (found.x < linear.upper)
    if not right.size or not room.any():
        return found
    x[room] += least_squares(M[:, room], right - M @ x)
    return replace(found, x=x)


def _acceptable(objective: Objective, linear: Linear, found: Solution) -> bool:
    """Whether a solution breaks no constraint, and no variable is still pulled to where it could go."""
    x = np.clip(found.x, linear.lower, linear.upper)
    if not np.isfinite(found.x).all() or linear.broken(x) > TRUSTED:
        return False
    size = np.abs(objective.H) @ np.abs(x) + np.abs(objective.c)
    size = size + np.abs(linear.E.T) @ np.abs(found.equation_price) + np.abs(linear.G.T) @ np.abs(found.row_price)
    pull = np.where(
        (found.bound_price < 0) & (x < linear.upper) | (found.bound_price > 0) & (x > linear.lower),
        found.bound_price,
        0.0,
    )
    wrong = max(float(np.abs(pull).max(initial=0.0)), -float(found.row_price.min(initial=0.0)))
    return wrong <= STATIONARY * float(size.max(initial=0.0))


def _rows_in_reach(linear: Linear) -> bool:
    """Whether each row alone can be met within the bounds: a cheap look that spares the solver most infeasible problems."""
    for M, v, equation in ((linear.E, linear.f, True), (linear.G, linear.h, False)):
        if v.size:
            ends = np.stack(contributions(M, linear.lower, linear.upper))
            least, most = ends.sum(axis=2)
            slack = TRUSTED * np.maximum(
                np.abs(v), np.where(np.isfinite(ends), np.abs(ends), 0.0).max(axis=0).sum(axis=1)
            )
            if (least > v + slack).any() or (equation and (most < v - slack).any()):
                return False
    return True


def project_polyhedron(u: Vector, linear: Linear, guess: Active | None) -> Solution:
    """The nearest point: the same exchange of constraints, where the equations of each guess are as few as its rows."""
    identity = Objective(np.eye(u.size), -u)
    found = None if guess is None else exchanged(None, -u, linear, guess)
    return found if found is not None and _acceptable(identity, linear, found) else solve_qp(identity, linear)


def _interior_point(objective: Objective, linear: Linear) -> Active | None:
    """The constraints that are active at PIQP's answer; None where it gives none."""
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-9
    solver.settings.max_iter = 100
    E, f = (np.asfortranarray(linear.E), linear.f) if linear.f.size else (None, None)
    near = linear.h < FAR  # the others PIQP would complain of
    G, h = (np.asfortranarray(linear.G[near]), linear.h[near]) if near.any() else (None, None)
    lower, upper = (
        np.where(linear.lower > -FAR, linear.lower, -np.inf),
        np.where(linear.upper < FAR, linear.upper, np.inf),
    )
    size = max(
        1.0, float(np.abs(objective.c).max(initial=0.0))
    )  # where bounds hold x far from where c pulls it: else PIQP loses its way
    solver.setup(np.asfortranarray(objective.H / size), objective.c / size, E, f, G, None, h, lower, upper)
    solver.solve()
    found = solver.result
    x, low, high = np.array(found.x), np.array(found.z_bl), np.array(found.z_bu)
    if not np.isfinite(x).all() or linear.broken(x) > OFF:  # there may be no point at all: linear programming will tell
        return None
    row_price = np.zeros(linear.h.size)
    row_price[near] = np.array(found.z_u) if near.any() else 0.0
    at_lower = (low > np.abs(x - linear.lower)) & np.isfinite(linear.lower)
    at_upper = (high > np.abs(linear.upper - x)) & np.isfinite(linear.upper) & ~at_lower
    return Active(at_lower, at_upper, row_price > np.abs(linear.h - linear.G @ x))


def feasible_point(linear: Linear) -> Vector:
    """A point of the polyhedron to rounding, by linear programming and a correction; of bounds alone, the one nearest to 0."""
    if not (linear.h.size or linear.f.size):
        return np.asarray(np.clip(0.0, linear.lower, linear.upper))
    (G, h, _), (E, f, _) = unit_rows(linear.G, linear.h), unit_rows(linear.E, linear.f)
    linear = Linear(linear.lower, linear.upper, G, h, E, f)
    found = linear_program(
        np.zeros(linear.lower.size), linear, lambda M: M, np.column_stack([linear.lower, linear.upper])
    )
    if found is None:
        raise InfeasibleError("linear programming proves that no point meets every constraint")
    x = np.clip(found, linear.lower, linear.upper)
    for _ in range(
        4
    ):  # HiGHS keeps rows to 1e-7: what is broken or nearly so is met exactly, by the variables that have room
        if linear.broken(x) <= MET:
            return x
        near = linear.G @ x - linear.h > -1e-7 * np.maximum(np.abs(x).max(initial=0.0), np.abs(linear.h))
        M, gap = (
            np.vstack([linear.E, linear.G[near]]),
            np.concatenate([linear.f - linear.E @ x, linear.h[near] - linear.G[near] @ x]),
        )
        room = (x > linear.lower) & (x < linear.upper)
        if not room.any():
            break
        x[room] += least_squares(M[:, room], gap)
        x = np.clip(x, linear.lower, linear.upper)
    if linear.broken(x) > TRUSTED:
        raise UndecidedError("linear programming finds a point, but none that meets every constraint to rounding")
    return x


def linear_program(cost: Vector, linear: Linear, widen: Callable[[Vector], Vector], bounds: Vector) -> Vector | None:
    """The point of least costᵀx under rows that `widen` fits to x, by HiGHS; None where it proves that there is none.

    HiGHS has absolute tolerances and drops small entries: columns, rows and right-hand sides are scaled to size 1, by powers of 2.
    """
    rows = unit_constraints(linear, widen)
    blocks = [M for M in (rows["A_ub"], rows["A_eq"]) if M is not None]
    from scipy.optimize import linprog  # here: scipy.optimize takes as long to import as all of ours

    largest = np.abs(np.vstack(blocks)).max(axis=0) if blocks else np.ones(cost.size)
    unit = np.exp2(-np.round(np.log2(np.where(largest > 0, largest, 1.0))))
    for key in ("ub", "eq"):
        M, v = rows[f"A_{key}"], rows[f"b_{key}"]
        if M is not None and v is not None:
            rows[f"A_{key}"], rows[f"b_{key}"], _ = unit_rows(M * unit, v)
    bounds = bounds / unit[:, None]
    sides = [
        side for side in (rows["b_ub"], rows["b_eq"], bounds[np.isfinite(bounds)]) if side is not None and side.any()
    ]
    scale = float(np.abs(sides[0]).max()) if sides else 1.0
    rows |= {key: side / scale for key, side in rows.items() if key.startswith("b_") and side is not None}
    found = linprog(cost * unit, **rows, bounds=bounds / scale, method="highs")
    if found.status == 2:
        return None
    if found.x is None:
        raise UndecidedError(f"linear programming could not decide whether there is a point: {found.message}")
    return np.asarray(found.x * scale * unit)
