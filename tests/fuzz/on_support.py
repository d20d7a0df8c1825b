"""Minimisation on one support, for any loss and set: exact for quadratic φ, by second-order models otherwise."""

from __future__ import annotations

import itertools

import numpy as np

from .ball import fit_in_ball, form_in_ball
from .qp import Answer, solve_qp
from .region import Region

STEPS = 500  # of the second-order method
STARTS = 6  # for losses that are not convex


def solve_on(phi, cut, support):
    """Solve min φ over C on a support."""
    if phi.quadratic and phi.convex:
        return model_on(*phi.pieces(support), cut)
    if phi.quadratic and cut.ball < np.inf and not np.isfinite(cut.lower).any():
        return Answer("optimal", form_in_ball(phi.hessian(support), phi.c[support], cut.ball))
    starts = _starts(phi, cut, support)
    if not starts:
        nothing = np.zeros((1, len(support)))
        return Answer(
            model_on(nothing, np.zeros(1), np.zeros(len(support)), cut).status.replace("optimal", "unclear"), None
        )
    if phi.quadratic and not cut.bounded and _falls(phi.hessian(support), cut):
        return Answer("unbounded", None)
    points = [_descend(phi, cut, support, z) for z in starts]
    if getattr(phi, "kind", "") == "huber" and cut.polyhedral:
        points += [_huber_by_qp(phi, cut, support, points[0])]
    embedded = [_embed(z, support, phi.n) for z in points]
    best = int(np.argmin([phi.value(x) for x in embedded]))
    return Answer("optimal" if phi.convex else "unclear", points[best])


def model_on(M, t, c, cut):
    """Solve min ½‖Mx − t‖² + cᵀx over C on a support."""
    if cut.ball == np.inf:
        return solve_qp(M, t, c, cut)
    if not np.isfinite(cut.lower).any():
        return Answer("optimal", fit_in_ball(M, t, c, cut.ball))
    return Answer("optimal", _in_nonnegative_ball(M, t, c, cut.ball))


def _in_nonnegative_ball(M, t, c, radius):
    """Return the best solution of the ball problems on all subsets of the entries that has the right signs."""
    n = len(c)
    best, value = np.zeros(n), 0.5 * float(t @ t)
    for size in range(1, n + 1):
        for free in itertools.combinations(range(n), size):
            chosen = list(free)
            z = fit_in_ball(M[:, chosen], t, c[chosen], radius)
            if z.min() >= -1e-13 * np.abs(z).max():
                x = np.zeros(n)
                x[chosen] = np.maximum(z, 0.0)
                at = 0.5 * float(((M @ x - t) ** 2).sum()) + float(c @ x)
                best, value = (x, at) if at < value else (best, value)
    return best


def _falls(H, cut):
    """Whether a direction of negative curvature never leaves C: search the faces of its recession cone."""
    n = len(H)
    sides = [[0] + [1] * (not np.isfinite(cut.upper[j])) + [-1] * (not np.isfinite(cut.lower[j])) for j in range(n)]
    level = float(np.abs(H).max(initial=0.0)) or 1.0
    for pattern in itertools.islice(itertools.product(*sides), 3000):
        live = np.flatnonzero(pattern)
        rows = cut.E[:, live]
        if not live.size:
            continue
        N = np.eye(live.size) if not len(rows) else _null(rows)
        if not N.shape[1]:
            continue
        values, vectors = np.linalg.eigh(N.T @ (H[np.ix_(live, live)] / level) @ N)
        if values[0] > -1e-9:
            continue
        for d in (N @ vectors[:, 0], -N @ vectors[:, 0]):
            whole = np.zeros(n)
            whole[live] = d
            signs = np.where(np.isfinite(cut.lower), whole >= 0, True) & np.where(
                np.isfinite(cut.upper), whole <= 0, True
            )
            if signs.all() and (cut.G @ whole <= 1e-12 * np.abs(cut.G).max(axis=1, initial=0.0)).all():
                return True
    return False


def _null(rows):
    scaled = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-300)
    _, S, Vt = np.linalg.svd(scaled)
    return Vt[int((S > 1e-12).sum()) :].T


def _embed(z, support, n):
    x = np.zeros(n)
    x[support] = z
    return x


def _starts(phi, cut, support):
    """Return feasible starts: the point nearest to 0, and for nonconvex φ the points nearest to random points."""
    rng = np.random.default_rng(7)
    size = cut.ball if cut.ball < np.inf else cut.diamond if cut.diamond < np.inf else None
    if size is None:
        sides = np.concatenate([cut.lower, cut.upper, cut.f])
        sides = np.abs(sides[np.isfinite(sides)])
        size = float(sides.max(initial=0.0)) or 1.0
    unit = np.eye(len(support)) / size
    targets = [np.zeros(len(support))] + [rng.standard_normal(len(support)) for _ in range(0 if phi.convex else STARTS)]
    found = [model_on(unit, target, np.zeros(len(support)), cut) for target in targets]
    return [answer.x for answer in found if answer.x is not None]


def _descend(phi, cut, support, z):
    """Run Newton's method on C with damped convex models; each step takes the best of their minimisers."""
    value, damping = phi.value(_embed(z, support, phi.n)), 1e-10
    # separable classes have no minimum
    perfect = 1e-13 * value if getattr(phi, "kind", "") == "logistic" else -np.inf
    # nonconvex: near a minimum steps are short and expensive
    settled, steps = (1e-13, STEPS) if phi.convex else (1e-10, STEPS // 10)
    for _ in range(steps):
        kinds = (False, True) if getattr(phi, "kind", "") in ("huber", "logistic", "quantile") else (False,)
        tried = [_model_step(phi, cut, support, z, value, damping, majorant) for majorant in kinds]
        at, lower, damping = min(tried, key=lambda step: step[1])
        if at is None or value - lower <= settled * np.abs(value) or lower <= perfect:
            return z if at is None else at
        z, value = at, lower
    return z


def _huber_by_qp(phi, cut, support, z):
    """Solve Huber's loss, min over u of ½‖Ax − b − u‖² + δ‖u‖₁, as a quadratic program in x and u = p − q from z."""
    x = _embed(z, support, phi.n)
    root, size, m = np.sqrt(phi.weight), len(support), len(phi.b)
    residual = phi.A @ x - phi.b
    u = residual - np.clip(residual, -phi.delta, phi.delta)
    M = np.block([[root[:, None] * phi.A[:, support], -np.diag(root), np.diag(root)],
                  [np.diag(np.sqrt(phi.ridge))[:, support], np.zeros((phi.n, 2 * m))]])  # fmt: skip
    t = np.concatenate([root * phi.b, np.zeros(phi.n)])
    c = np.concatenate([np.zeros(size), phi.delta * phi.weight, phi.delta * phi.weight])
    zeros, inf = np.zeros(2 * m), np.full(2 * m, np.inf)
    wide = Region(
        np.concatenate([cut.lower, zeros]), np.concatenate([cut.upper, inf]),
        np.hstack([cut.G, np.zeros((len(cut.h), 2 * m))]), cut.h, np.hstack([cut.E, np.zeros((len(cut.f), 2 * m))]),
        cut.f,
    )  # fmt: skip
    found = solve_qp(M, t, c, wide, np.concatenate([z, np.maximum(u, 0.0), np.maximum(-u, 0.0)]))
    return found.x[:size]


def _model_step(phi, cut, support, z, value, damping, majorant):
    """Return the model's minimiser with the damping for which φ falls most; None if φ never falls."""
    x = _embed(z, support, phi.n)
    M, g = phi.factor(x, support, majorant), phi.gradient(x)[support]
    norms = np.sqrt((M * M).sum(axis=0))
    norms = np.where(norms > 1e-8 * norms.max(initial=0.0), norms, float(norms.max(initial=0.0)) or 1.0)
    best = (None, value, 1e-10)
    for level in damping * 100.0 ** np.arange(12):
        damped = np.vstack([M, np.sqrt(level) * np.diag(norms)])
        answer = model_on(damped, damped @ z, g, cut)
        # slightly outside φ may be lower, but the point is infeasible
        if answer.x is not None and cut.holds(answer.x):
            at = phi.value(_embed(answer.x, support, phi.n))
            if at < best[1]:
                best = (answer.x, at, max(level / 100, 1e-14))
            elif best[0] is not None:
                break
    return best
