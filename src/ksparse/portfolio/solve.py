"""The best portfolio of at most k assets under the rules of a portfolio problem."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.portfolio.extended_formulation import Lifted
from ksparse.portfolio.problem import WARM, Portfolio
from ksparse.portfolio.tracking import NearIndex
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet
from ksparse.solve.judge import gap_between, moved, restated
from ksparse.solve.minimize import minimize, one_search
from ksparse.util.arrays import is_array
from ksparse.util.checks import check_number

FEASIBLE = 1e-6  # weights that miss the budget by more are no answer
CLAIMED = 1e-8  # of a value: what is proved of it is proved to this


def solve_portfolio(
    wanted: Portfolio, k: int, *, min_weight: float = 0.0, C: ConvexSet | None = None, **options: Any
) -> Result:
    """The best portfolio of at most k assets, each at least min_weight in size; C : a set instead of budget, bounds and rows.

    Names that are forced in are then at least min_weight too, where they cannot be short. `UnboundedError` where the best weights are so
    large that in floating-point numbers they cannot sum to the budget.
    """
    floor = check_number(min_weight, "min_weight", at_least=0)
    if floor > max(wanted.upper.max(), -wanted.lower.min()):
        raise InfeasibleError(f"min_weight {floor:g} is above max_weight {wanted.upper.max():g}")
    require_counts(wanted, k, floor)
    if wanted.index is not None and C is None:
        return NearIndex(wanted, k, floor, partial(solve_portfolio, min_weight=floor)).answer(**options)
    named = np.isin(np.arange(wanted.lower.size), wanted.forced_in) & (wanted.lower >= 0)
    near, power = replace(wanted, lower=np.where(named, np.maximum(wanted.lower, floor), wanted.lower)).scaled()
    sides = floor > 0 and bool(((wanted.lower < 0) & (wanted.upper > 0)).any()) and is_array(wanted.V)
    if C is None and (wanted.trades or wanted.max_short is not None or sides):
        found = _solve_lifted(near, k, floor, options)
    else:
        found = minimize(
            near.loss, k, near.C if C is None else C, min_nonzero=floor, forced_in=wanted.forced_in, forced_out=wanted.forced_out,
            group_limits=wanted.group_limits, **options,
        )  # fmt: skip
    if C is None and found.status is not Status.UNBOUNDED and not found.maxcv <= FEASIBLE:
        raise UnboundedError(
            "some portfolio has hardly any risk and as much return as one likes: bound the weights, or weigh the risk more"
        )
    x = np.asarray(found.x, dtype=float)
    fun = wanted.value(x) if C is None else wanted.loss.value(x)
    return restated(found, fun, lambda value: np.ldexp(value, power))


def require_counts(wanted: Portfolio, k: int, floor: float) -> None:
    """That k names can obey the limits of their groups."""
    if wanted.counts is not None:
        wanted.counts.require(k, wanted.inside, ~np.isin(np.arange(wanted.lower.size), wanted.forced_out), floor)


def _solve_lifted(wanted: Portfolio, k: int, floor: float, options: dict[str, Any]) -> Result:
    """Solve the same problem in the variables of the lifting, where an asset may have a long and a short part at once.

    What is left of both may be below the floor. So the search comes first where there is a floor, with half of the time. If its best point
    has such an asset, the problem is solved with at most one part of each asset; if not, its best point is proved as it is. The problem
    with both parts holds all portfolios, so its lower bound is one of the other too.
    """
    lifted, began = Lifted(wanted), time.perf_counter()
    limit, start, gap = options.pop("max_time", None), options.pop("x0", None), options.pop("gap", None)
    if start is None and wanted.held is not None and np.count_nonzero(wanted.held) <= k:
        start = wanted.held
    loss, C, shut, limits = lifted.loss, lifted.C, lifted.shut(), lifted.group_limits
    z = None if start is None else lifted.lift(np.asarray(start, dtype=float))
    bound, nodes, stopped, one_side = -np.inf, 0, None, False
    first = floor > 0 and lifted.short.size > 0  # whether this solve is the search alone
    while True:
        left = None if limit is None else max(0.0, began + (0.5 if first else 1.0) * limit - time.perf_counter())
        found = minimize(
            loss, k + lifted.kinked.size, C, min_nonzero=lifted.floor(floor), forced_in=lifted.forced(), forced_out=shut,
            group_limits=limits, x0=z, max_time=left, gap=None if first else gap,
            **(options if gap is None else one_search(options)),
        )  # fmt: skip
        z, nodes = np.asarray(found.x, dtype=float), nodes + found.nodes
        whole = shut.size == lifted.shut().size
        bound = max(bound, found.lower_bound) if whole else bound
        if found.status in (Status.INTERRUPTED, Status.CALLBACK_STOP):  # no more than a point that obeys is looked for
            stopped, limit = stopped or found.status, 0.0
            options.pop("callback", None)
        small = lifted.small(z, floor)
        if small.size and lifted.group_limits is None and not one_side:
            z[small], limits, one_side = 0.0, lifted.one_side, True
        elif small.size and not one_side:  # a variable has one label, that of its group: the smaller parts are left out
            z[small], shut = 0.0, np.union1d(shut, small)
        elif (
            first and stopped is None and (found.status is Status.TIME_LIMIT or (gap is not None and found.status.good))
        ):
            options = {"settings": WARM} | options
        else:
            break
        first = False
    x = lifted.weights(z)
    if lifted.kinked.size:
        exact = lifted.settled(lifted.lift(x), C, floor)
        x = lifted.weights(exact) if exact is not None and C.contains(exact) else x
    fun, answer = wanted.value(x), moved(found, lifted.constant)
    bound = min(bound + lifted.constant, fun)
    apart, status = gap_between(fun, bound), stopped or found.status
    if status.good and gap is not None and apart <= gap:
        status = Status.OPTIMAL
    elif status.good and not (whole and fun <= answer.fun + CLAIMED * abs(fun)):
        status = (
            status.without_proof
        )  # what is proved of fewer portfolios is not of all, nor what is proved of a smaller value of this one
    return replace(
        answer, x=x, fun=fun, support=np.flatnonzero(x), k=k, maxcv=wanted.violation(x), lower_bound=bound, gap=apart, nodes=nodes,
        elapsed=time.perf_counter() - began, status=status, message=found.message if status is found.status else status.message,
        success=found.success and status.good, proved=found.proved and status in (Status.OPTIMAL, Status.SWAP_OPTIMAL),
    )  # fmt: skip
