"""The paper's way (Sec. 6.2): the penalised problem for each weight of a grid, rounded to k entries, the best answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ksparse.firstorder.loop import drive, not_begun
from ksparse.firstorder.methods import APDCA, GIST, IHT, L1DCA, L1PDCA, MIPDCA, PDCA, Method, NmAPG, PDCAe
from ksparse.firstorder.problem import Problem
from ksparse.firstorder.steps import Backtracking, FixedStep, StepRule, check_rule
from ksparse.penalties import Penalty
from ksparse.result import Result
from ksparse.solve.judge import best_of, judge_sparse, round_to_sparse, take_as_sparse
from ksparse.solve.request import Request, evaluations_of
from ksparse.util.checks import check_number, check_piece
from ksparse.util.progress import track

RHO_GRID = tuple(10.0**i for i in range(-4, 5))  # the paper's

METHODS: dict[str, Callable[[StepRule], Method]] = {
    "pdca": PDCA,
    "apdca": APDCA,
    "pdcae": lambda rule: PDCAe(),  # its step is 1/L by definition
    "gist": GIST,
    "nmapg": NmAPG,
    "iht": IHT,
    "l1pdca": L1PDCA,
    "l1dca": lambda rule: L1DCA(),
    "mipdca": lambda rule: MIPDCA(),
}


def solve_on_grid(request: Request, method: Method, rho: str | float | Sequence[float], continuation: bool) -> Result:
    """The best of the rounded answers over the weights; with continuation each run starts where the last one ended."""
    weights: Sequence[float | None] = resolve_weights(rho) if method.weighted else [None]
    rounding = take_as_sparse if method.exact else round_to_sparse
    results: list[Result] = []
    begin = request.x0
    for weight in track(weights, "weights"):
        request = replace(request, before=evaluations_of(request.loss)) if results else request
        penalty = method.penalty(request.k, weight or 1.0, request.C)
        check_piece(penalty, Penalty, f"{method.name}.penalty(k, rho, C)")
        problem = Problem(request.loss, penalty, request.C, request.n)
        begin = problem.zeros() + 1.0 / request.n if begin is None else begin
        try:
            if request.interrupted:
                raise KeyboardInterrupt
            run = drive(
                method, problem, begin, request.stopping_now(), callback=request.callback, verbose=request.verbose
            )
        except KeyboardInterrupt:  # before there was a point
            run = not_begun(problem, begin)
        rounded = partial(rounding, request.loss, request.C, run.x, request.k, request.deadline)
        results.append(judge_sparse(request, weight, run, method.name, rounded))
        if results[-1].status.early:
            break
        begin = run.x if continuation else request.x0
    return best_of(results, request.elapsed, method.exact)


def resolve_rule(step: str | StepRule) -> StepRule:
    """A step rule from its name, or as it is."""
    rules: dict[str, StepRule] = {"backtracking": Backtracking(), "fixed": FixedStep()}
    if isinstance(step, str):
        if step not in rules:
            raise ValueError(f"step must be one of {', '.join(rules)} or a step rule, got {step!r}")
        return rules[step]
    check_rule(step, "step")
    return step


def resolve_method(method: str | Method, step: str | StepRule) -> Method:
    """A method object from its name and its step rule."""
    step = resolve_rule(step)
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(
                f"method must be one of auto (in minimize), {', '.join(METHODS)} or a method object, got {method!r}"
            )
        return METHODS[method](step)
    if isinstance(method, type):
        raise TypeError(
            f"method must be a name or an object, got the class {method.__name__}: write {method.__name__}()"
        )
    if not isinstance(method, Method):
        raise TypeError(
            f"method must be a name or an object derived from ksparse.Method, with init and step, got {type(method).__name__}"
        )
    return method


def resolve_weights(rho: str | float | Sequence[float]) -> list[float]:
    """The weights to try."""
    if isinstance(rho, str):
        if rho != "auto":
            raise ValueError(f"rho must be 'auto', a number > 0 or a sequence of them, got {rho!r}")
        return list(RHO_GRID)
    if np.ndim(rho) == 0:
        return [check_number(rho, "rho", above=0)]
    weights = [check_number(weight, "rho", above=0) for weight in rho]  # type: ignore[union-attr]
    if not weights:
        raise ValueError("rho must hold at least one weight, got an empty sequence")
    return weights
