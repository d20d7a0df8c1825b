"""min ½‖Mx − t‖² + cᵀx over a polyhedron, by a primal active-set method on the factor itself: never MᵀM.

Slow and plain: singular value decompositions of a few rows at every step. Every iterate is feasible, so that the
result is an upper bound; "optimal" requires multipliers of the right signs, "unbounded" a direction of descent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .region import Region

RANK = 1e-12  # singular values below this, of matrices with unit columns, are 0
LIMIT = 300


@dataclass(frozen=True)
class Answer:
    """Solution of a small problem: "optimal", "unbounded", "infeasible" or "unclear", and the best point."""

    status: str
    x: np.ndarray | None


def solve_qp(M, t, c, region: Region, start=None) -> Answer:
    """Solve on a polyhedron (with an ℓ1 ball by x = p − q), from a feasible point if one is given."""
    if region.diamond < np.inf:
        n = len(c)
        split = Region.of(2 * n, lower=0.0, G=np.ones(2 * n), h=region.diamond)
        found = solve_qp(np.hstack([M, -M]), t, np.concatenate([c, -c]), split)
        return Answer(
            found.status, None if found.x is None else _into_diamond(found.x[:n] - found.x[n:], region.diamond)
        )
    unit, size = _scales(M, t, c, region)
    s = unit * size
    R, r, bound_of = _inequalities(region, s)
    E, f = _unit_rows(region.E * unit, region.f / size)
    Mu, tu, cu = M * unit, t / size, c * unit / size
    if start is None:
        found = _feasible(R, r, E, f, len(c))
        if found is None or found[1] > 1e-7:
            return Answer("infeasible", None)
        if found[1] > 1e-11:
            return Answer("unclear", None)
        v, active = found[0], []
    else:
        v = start / s
        active = _touching(R, r, E, v)
    status, v, active = _active_set(Mu, tu, cu, R, np.maximum(r, R @ v), E, f, v, active)
    x = v * s
    for i in active:  # exactly at the bound
        if bound_of[i] is not None:
            j, bound = bound_of[i]
            x[j] = bound
    return Answer(status, np.clip(x, region.lower, region.upper))


def _into_diamond(x, radius):
    total = np.abs(x).sum()
    return x if total <= radius else x * (radius / total)


def _norms(M):
    top = np.abs(M).max(axis=0, initial=0.0)
    safe = np.where(top > 0, top, 1.0)
    return top * np.sqrt(((M / safe) ** 2).sum(axis=0))


def _scales(M, t, c, region):
    """Return units in which columns of M have length 1, and a typical size of x in these units."""
    norms = _norms(M)
    seen = norms > 0
    unit = np.ones(len(c))
    unit[seen] = 1.0 / norms[seen]
    if seen.any():
        unit[~seen] = np.median(unit[seen])
    elif np.abs(c).max(initial=0.0) > 0:
        unit[:] = 1.0 / np.abs(c).max()
    with np.errstate(over="ignore"):
        natural = max(_norms(t[:, None])[0] if t.size else 0.0, float(np.abs(c * unit).max(initial=0.0)))
        low, high = region.lower / unit, region.upper / unit
        sides = [low[low > 0], -high[high < 0]]
        for M_, v in ((region.E, np.abs(region.f)), (region.G, np.maximum(-region.h, 0.0))):
            width = np.abs(M_ * unit).max(axis=1, initial=0.0)
            sides.append(v[width > 0] / width[width > 0])
        least = max(float(np.max(side, initial=0.0)) for side in sides)
        ends = np.concatenate([np.abs(low), np.abs(high)])
        most = float(ends.max(initial=0.0)) if np.isfinite(ends).all() else np.inf
    size = max(min(natural, most), least) or (most if 0 < most < np.inf else 1.0)
    return unit, size


def _unit_rows(M, v):
    top = np.abs(M).max(axis=1, initial=0.0)
    top = np.where(top > 0, top, 1.0)
    return M / top[:, None], v / top


def _inequalities(region, s):
    """Return all inequalities as unit rows Rv ≤ r for v = x/s, and the bound that each row is."""
    n = len(s)
    G, h = _unit_rows(region.G * s, region.h)
    up, down = np.flatnonzero(np.isfinite(region.upper)), np.flatnonzero(np.isfinite(region.lower))
    R = np.vstack([G, np.eye(n)[up], -np.eye(n)[down]])
    r = np.concatenate([h, region.upper[up] / s[up], -region.lower[down] / s[down]])
    bound_of = [None] * len(h) + [(j, region.upper[j]) for j in up] + [(j, region.lower[j]) for j in down]
    return R, r, bound_of


def _feasible(R, r, E, f, n):
    """Return a feasible point and its violation, by least squares on the violations; None if bounds cross."""
    rows = np.abs(R).sum(axis=1) > 1  # general rows; the others are bounds
    single = ~rows & (np.abs(R).sum(axis=1) == 1)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    for row, side in zip(R[single], r[single], strict=True):
        j = int(np.argmax(np.abs(row)))
        if row[j] > 0:
            high[j] = min(high[j], side)
        else:
            low[j] = max(low[j], -side)
    if (low - high > 1e-13 * np.maximum(np.abs(low), np.abs(high))).any():
        return None
    high = np.maximum(low, high)  # bounds that cross by a rounding meet
    general = ~single
    G, h = R[general], r[general]
    v = np.clip(np.zeros(n), low, high)
    if not len(f) and (G @ v <= h).all():
        return v, 0.0
    p = len(h)
    slack = np.maximum(G @ v - h, 0.0)
    wide_M = np.block([[E, np.zeros((len(f), p))], [np.zeros((p, n)), np.eye(p)]])
    bounds = np.hstack([R[single], np.zeros((int(single.sum()), p))])
    wide_R = np.vstack([np.hstack([G, -np.eye(p)]), np.hstack([np.zeros((p, n)), -np.eye(p)]), bounds])
    wide_r = np.concatenate([h, np.zeros(p), r[single]])
    nothing = np.zeros((0, n + p))
    target = np.concatenate([f, np.zeros(p)])
    _, w, _ = _active_set(
        wide_M, target, np.zeros(n + p), wide_R, wide_r, nothing, np.zeros(0), np.concatenate([v, slack]), []
    )
    v = np.clip(w[:n], low, high)
    size = max(1.0, float(np.abs(v).max(initial=0.0)))
    gaps = np.concatenate([np.abs(E @ v - f), G @ v - h])
    return v, float(gaps.max(initial=0.0)) / size


def _null(B):
    if not len(B):
        return np.eye(B.shape[1])
    _, S, Vt = np.linalg.svd(B)
    return Vt[int((S > RANK).sum()) :].T


def _touching(R, r, E, v):
    """Return a maximal independent set of inequalities that hold with equality at v."""
    active, N = [], _null(E)
    for i in np.flatnonzero(R @ v >= r - 1e-14 * np.maximum(1.0, np.abs(r))):
        if np.linalg.norm(R[i] @ N) > 1e-8:
            active.append(int(i))
            N = _null(np.vstack([E, R[active]]))
    return active


def _active_set(M, t, c, R, r, E, f, v, active):
    """Step from a feasible v to the active optimum or the first blocking constraint; drop one of wrong multiplier."""
    size = max(1.0, float(np.linalg.norm(M)))
    for count in range(LIMIT):
        B = np.vstack([E, R[active]])
        N = _null(B)
        p, longest = _step(M, t, c, v, N, size)
        length = float(np.abs(p).max(initial=0.0))
        if longest == 1.0 and length <= 1e-13 * max(1.0, float(np.abs(v).max(initial=0.0))):
            drop = _wrong_price(M, t, c, v, B, len(f), count > LIMIT // 2)
            if drop is None:
                return "optimal", _settled(v, R, r, E, f, active), active
            active.pop(drop)
            continue
        towards = R @ p
        towards[active] = 0.0
        ahead = np.flatnonzero(towards > 1e-12 * length)
        room = np.maximum(r[ahead] - R[ahead] @ v, 0.0) / towards[ahead]
        reach = float(room.min(initial=np.inf))
        if reach == np.inf and longest == np.inf:
            # otherwise it is undecided
            steep = np.linalg.norm(c @ p) > 1e-9 * np.linalg.norm(M.T @ (M @ v - t) + c)
            return "unbounded" if steep else "unclear", _settled(v, R, r, E, f, active), active
        v = v + min(reach, longest) * p
        if reach < longest:
            ties = ahead[room <= reach * (1 + 1e-12)]
            active.append(int(ties[np.argmax(towards[ties])]))
    return "unclear", _settled(v, R, r, E, f, active), active


def _settled(v, R, r, E, f, active):
    """Remove, twice, the rounding errors of the equations and of active or slightly violated inequalities."""
    for _ in range(2):
        broken = [i for i in np.flatnonzero(R @ v > r) if i not in active]
        B, side = np.vstack([E, R[active], R[broken]]), np.concatenate([f, r[active], r[broken]])
        if len(B):
            v = v - np.linalg.pinv(B, rcond=RANK) @ (B @ v - side)
    return v


def _step(M, t, c, v, N, size):
    """Return the step to the optimum on the active equations, 1.0; or a flat descent direction, inf."""
    if not N.shape[1]:
        return np.zeros_like(v), 1.0
    residual = t - M @ v
    U, S, Vt = np.linalg.svd(M @ N, full_matrices=True)
    rank = int((S > RANK * size).sum())
    pull = N.T @ c
    flat = Vt[rank:] @ pull
    if np.linalg.norm(flat) > 1e-9 * np.linalg.norm(c):
        p = -N @ (Vt[rank:].T @ flat)
        return p / np.abs(p).max(), np.inf
    u = (U[:, :rank].T @ residual) / S[:rank] - (Vt[:rank] @ pull) / S[:rank] ** 2
    return N @ (Vt[:rank].T @ u), 1.0


def _wrong_price(M, t, c, v, B, equations, first):
    """Return the active inequality of most negative multiplier, or the first (against cycles), without equations."""
    if len(B) == equations:
        return None
    gradient = M.T @ (M @ v - t) + c
    prices = np.linalg.lstsq(B.T, -gradient, rcond=RANK)[0][equations:]
    wrong = np.flatnonzero(prices < -1e-11 * max(float(np.abs(gradient).max()), float(np.abs(c).max(initial=0.0))))
    if not wrong.size:
        return None
    return int(wrong[0] if first else wrong[np.argmin(prices[wrong])])
