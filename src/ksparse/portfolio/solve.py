"""The best portfolio of at most k assets under the rules of a portfolio problem."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.losses import LeastSquares
from ksparse.portfolio.extended_formulation import ExtendedPortfolio
from ksparse.portfolio.problem import WARM, Portfolio
from ksparse.portfolio.tracking import TrackingLimitedSearch
from ksparse.result import Result, Status
from ksparse.sets import ConvexSet
from ksparse.solve.judge import gap_between, in_other_units
from ksparse.solve.minimize import minimize, one_search
from ksparse.util.checks import check_number

FEASIBLE = 1e-6  # a larger violation of the rules shows that the best weights are unbounded
CLAIMED = 1e-8  # relative difference of values up to which a proof carries over


class UnboundedPortfolioError(UnboundedError, ValueError):
    """The problem has no best portfolio."""


NO_RISK = "the problem is unbounded: a zero-variance portfolio has unlimited return; set long_only=True or max_weight"


def solve_portfolio(
    problem: Portfolio, k: int, *, min_weight: float = 0.0, C: ConvexSet | None = None, **options: Any
) -> Result:
    """Return the best portfolio of at most k assets, each at least min_weight in size.

    C : a set instead of budget, bounds and rows. Assets that are forced in are at least min_weight too, unless they may
    be short. Raise UnboundedPortfolioError if there is no best portfolio, or if its weights are so large that in
    floating-point numbers they cannot sum to the budget.
    """
    least = check_number(min_weight, "min_weight", at_least=0)
    if least > max(problem.upper.max(), -problem.lower.min()):
        raise InfeasibleError(f"min_weight {least:g} is above max_weight {problem.upper.max():g}")
    every = np.arange(problem.lower.size)
    problem.counts.check_feasible(k, problem.forced, ~np.isin(every, problem.forced_out), least)
    if problem.benchmark is not None and C is None:
        solve = partial(solve_portfolio, min_weight=least)
        return TrackingLimitedSearch(problem, problem.benchmark, k, least, solve).run(**options)
    named = np.isin(every, problem.forced_in) & (problem.lower >= 0)
    near, power = replace(problem, lower=np.where(named, np.maximum(problem.lower, least), problem.lower)).scaled()
    two_sided = least > 0 and bool(((problem.lower < 0) & (problem.upper > 0)).any())
    scale = float(np.ldexp(1.0, power))
    try:
        if C is None and (problem.trades or problem.max_short is not None or two_sided):
            found = _solve_extended(near, k, least, options)
        else:
            loss = near.loss
            if problem.tracked is not None:
                X, y = problem.tracked.X, problem.tracked.y
                size = float(np.sqrt(np.mean(np.square(X)))) or 1.0  # returns are small numbers
                loss, scale = LeastSquares(X / size, y / size), 2.0 * size**2 / len(y)
            found = minimize(
                loss, k, near.C if C is None else C, min_nonzero=least, forced_in=problem.forced_in,
                forced_out=problem.forced_out, group_limits=problem.counts.as_group_limits(), **options,
            )  # fmt: skip
    except UnboundedError:
        raise UnboundedPortfolioError(NO_RISK) from None
    outside = not found.maxcv <= FEASIBLE and (C is None or found.status is Status.NUMERICAL_TROUBLE)
    if found.status is Status.UNBOUNDED or outside:
        raise UnboundedPortfolioError(NO_RISK)
    found = replace(found, x=np.asarray(found.x, dtype=float))
    return in_other_units(found, problem.value(found.x), lambda value: scale * value)


def _solve_extended(problem: Portfolio, k: int, min_weight: float, options: dict[str, Any]) -> Result:
    """Solve the extended formulation of the problem, where an asset may have a long and a short part at once.

    The difference of the parts may be below min_weight. So if min_weight > 0, a search comes first, with half of the
    time. If its best point has such an asset, the problem is solved again with at most one part of each asset; if not,
    it is solved from that point. The problem with both parts contains all portfolios, so its lower bound also holds
    with one part of each.
    """
    extended, began = ExtendedPortfolio(problem), time.perf_counter()
    limit, start, gap = options.pop("max_time", None), options.pop("x0", None), options.pop("gap", None)
    if start is None and 0 < np.count_nonzero(problem.held) <= k:
        start = problem.held
    loss, C, forbidden, limits = extended.loss, extended.C, extended.forbidden, extended.group_limits
    z = None if start is None else extended.extend(np.asarray(start, dtype=float))
    bound, nodes, stopped, one_side = -np.inf, 0, None, False
    first = min_weight > 0 and extended.short.size > 0  # whether this solve is the search alone
    while True:
        left = None if limit is None else max(0.0, began + (0.5 if first else 1.0) * limit - time.perf_counter())
        found = minimize(
            loss, k + extended.kinked.size, C, min_nonzero=extended.min_nonzero(min_weight),
            forced_in=extended.forced_in, forced_out=forbidden, group_limits=limits, x0=z, max_time=left,
            gap=None if first else gap, **(options if gap is None else one_search(options)),
        )  # fmt: skip
        z, nodes = np.asarray(found.x, dtype=float), nodes + found.nodes
        whole = forbidden.size == extended.forbidden.size
        bound = max(bound, found.lower_bound) if whole else bound
        if found.status in (Status.INTERRUPTED, Status.CALLBACK_STOP):  # only a feasible point is still needed
            stopped, limit = stopped or found.status, 0.0
            options.pop("callback", None)
        again = found.status is Status.TIME_LIMIT or (gap is not None and found.status.good)
        small = extended.too_small(z, min_weight)
        if small.size and not one_side:
            z[small] = 0.0
            if extended.group_limits is None:
                limits, one_side = extended.one_side, True
            else:  # a variable has one label, that of its group: the smaller parts are left out instead
                forbidden = np.union1d(forbidden, small)
        elif first and again and stopped is None:
            options = {"settings": WARM} | options
        else:
            break
        first = False
    x = extended.weights(z)
    if extended.kinked.size:
        exact = extended.reoptimise(extended.extend(x), C, min_weight)
        x = extended.weights(exact) if exact is not None and C.contains(exact) else x
    fun, constant = problem.value(x), extended.constant
    answer, bound = in_other_units(found, found.fun + constant, lambda v: v + constant), min(bound + constant, fun)
    apart, status = gap_between(fun, bound), stopped or found.status
    if status.good and gap is not None and apart <= gap:
        status = Status.OPTIMAL
    elif status.good and not (whole and fun <= answer.fun + CLAIMED * abs(fun)):
        status = status.without_proof  # the proof was for fewer portfolios, or for a value that φ(x) exceeds
    message = found.message if status is found.status else status.message
    proved = found.proved and status in (Status.OPTIMAL, Status.SWAP_OPTIMAL)
    return replace(
        answer, x=x, fun=fun, support=np.flatnonzero(x), k=k, maxcv=problem.violation(x), lower_bound=bound, gap=apart,
        nodes=nodes, elapsed=time.perf_counter() - began, status=status, message=message, proved=proved,
        success=found.success and status.good,
    )  # fmt: skip
