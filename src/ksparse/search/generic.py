"""Search over supports for losses that have no model to rank by: custom functions, and nonconvex ones off the ball.

Outsiders are ranked by the size of their gradient (less what the equations of C explain), members by the size of their entry; the most
promising exchanges are re-solved and the best kept. Nothing is proved.
"""

from __future__ import annotations

import numpy as np

from ksparse.base.arrays import Vector
from ksparse.search.search import Found
from ksparse.search.task import Candidate, Task, tolerance

MEMBERS, OUTSIDERS = 4, 6  # how many of each are paired in a sweep


def search_generic(task: Task, start: Candidate) -> Found:
    """Improve a candidate by adds and swaps among the most promising variables."""
    best, moves = start, 0
    while not task.expired:
        better = _sweep(task, best)
        if better is None:
            break
        best, moves = better, moves + 1
    return Found(best, moves, False)


def _sweep(task: Task, at: Candidate) -> Candidate | None:
    outside = task.outsiders(at)
    pull = np.abs(_reduced_gradient(task, at))
    newcomers = outside[np.argsort(-pull[outside], kind="stable")][:OUTSIDERS]
    movable = np.flatnonzero(~np.isin(at.support, task.forced))
    leavers = movable[np.argsort(np.abs(at.x[movable]), kind="stable")][:MEMBERS]
    tried = [np.append(at.support, i) for i in newcomers] if at.support.size < task.k else []
    tried += [np.append(np.delete(at.support, j), i) for j in leavers for i in newcomers]
    best, bar = None, at.value - tolerance(task, at.value)
    for support in tried:
        if task.expired:
            break
        candidate = task.evaluate(support, at)
        if candidate is not None and candidate.value < bar:
            best, bar = candidate, candidate.value
    return best


def _reduced_gradient(task: Task, at: Candidate) -> Vector:
    """∇φ less the part that the equations of C, priced on the support, account for."""
    gradient = np.asarray(task.loss.gradient(at.full(task.n)))
    if task.linear is None or not task.linear.f.size or not at.support.size:
        return gradient
    E = task.linear.E
    price = np.linalg.lstsq(E[:, at.support].T, gradient[at.support], rcond=None)[0]
    return np.asarray(gradient - E.T @ price)
