"""The best portfolio of at most k assets under the rules of a portfolio problem."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ksparse.base.arrays import is_array
from ksparse.base.checks import check_number
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.models.lifting import Lifted
from ksparse.models.near_index import NearIndex
from ksparse.models.portfolio import Portfolio
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet
from ksparse.solve.judge import moved, restated
from ksparse.solve.minimize import minimize

FEASIBLE = 1e-6  # weights that miss the budget by more are no answer
CLAIMED = 1e-8  # of a value: what is proved of it is proved to this


def solve_portfolio(wanted: Portfolio, k: int, *, min_weight: float = 0.0, C: ConvexSet | None = None, **options: Any) -> Result:
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
    """The same in the variables of the lifting; who would be long and short at once, which no portfolio is, loses the smaller part."""
    lifted = Lifted(wanted)
    start = options.pop("x0", None)
    if start is None and wanted.held is not None and np.count_nonzero(wanted.held) <= k:
        start = wanted.held
    loss, C, shut = lifted.loss, lifted.C, lifted.shut()
    while True:
        found = minimize(
            loss, k + lifted.kinked.size, C, min_nonzero=lifted.floor(floor), forced_in=lifted.forced(), forced_out=shut,
            group_limits=lifted.group_limits, x0=None if start is None else lifted.lift(np.asarray(start, dtype=float)), **options,
        )  # fmt: skip
        z = np.asarray(found.x, dtype=float)
        doubled = lifted.doubled(z)
        if not doubled.size:
            break
        shut = np.union1d(shut, doubled)
    if lifted.kinked.size:
        exact = lifted.settled(z, C, floor)
        z = exact if exact is not None and C.contains(exact) else z
    x = lifted.weights(z)
    whole = replace(moved(found, lifted.constant), x=x, support=np.flatnonzero(x), k=k, maxcv=wanted.violation(x))
    claimed = CLAIMED * abs(wanted.value(x))
    if shut.size == lifted.shut().size and wanted.value(x) <= whole.fun + claimed:
        return replace(whole, fun=wanted.value(x))
    # what is proved of fewer portfolios is not of all, nor what is proved of a smaller value of this one
    status = Status.STATIONARY if found.status.good else found.status
    return replace(whole, lower_bound=-np.inf, gap=np.inf, status=status, message=status.message, proved=False)
