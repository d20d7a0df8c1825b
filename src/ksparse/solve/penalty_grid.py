"""The paper's approach (Sec. 6.2): solve the penalised problem for each weight of a grid, round, keep the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ksparse.firstorder.loop import drive, not_begun
from ksparse.firstorder.methods import APDCA, GIST, IHT, L1DCA, L1PDCA, MIPDCA, PDCA, Method, NmAPG, PDCAe
from ksparse.firstorder.problem import Problem
from ksparse.firstorder.steps import Backtracking, FixedStep, StepRule, check_rule
from ksparse.losses.base import evaluations_since
from ksparse.penalties import Penalty
from ksparse.result import Result
from ksparse.solve.judge import best_of, judge_sparse
from ksparse.solve.request import Request
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
    """Return the best rounded solution over the weights; with continuation each run starts where the last ended."""
    weights: Sequence[float | None] = resolve_weights(rho) if method.weighted else [None]
    results: list[Result] = []
    begin = request.beginning
    for weight in track(weights, "weights"):
        if results:
            so_far = evaluations_since((0, 0), request.loss)
            request = replace(request, before=(so_far["nfev"], so_far["njev"]))
        penalty = method.penalty(request.k, weight or 1.0, request.C)
        check_piece(penalty, Penalty, f"{method.name}.penalty(k, rho, C)")
        problem = Problem(request.loss, penalty, request.C, request.n)
        try:
            if request.interrupted:
                raise KeyboardInterrupt
            now = request.stopping.until(request.deadline)
            run = drive(method, problem, begin, now, callback=request.callback, verbose=request.verbose)
        except KeyboardInterrupt:  # before there was a point
            run = not_begun(problem, begin)
        results.append(judge_sparse(request, weight, run, method))
        if results[-1].status.early:
            break
        begin = run.x if continuation else request.beginning
    return best_of(results, request.elapsed, method.exact)


def resolve_rule(step: str | StepRule) -> StepRule:
    """Return the step rule of a name, or check a step rule."""
    rules: dict[str, StepRule] = {"backtracking": Backtracking(), "fixed": FixedStep()}
    if isinstance(step, str):
        if step not in rules:
            raise ValueError(f"step must be one of {', '.join(rules)} or a step rule, got {step!r}")
        return rules[step]
    check_rule(step, "step")
    return step


def resolve_method(method: str | Method, step: str | StepRule) -> Method:
    """Return the method of a name with a step rule, or check a method object."""
    step = resolve_rule(step)
    if isinstance(method, str):
        if method not in METHODS:
            names = ", ".join(METHODS)
            raise ValueError(f"method must be one of auto (in minimize), {names} or a method object, got {method!r}")
        return METHODS[method](step)
    if isinstance(method, type):
        name = method.__name__
        raise TypeError(f"method must be a name or an object, got the class {name}: write {name}()")
    if not isinstance(method, Method):
        needed = "a name or an object derived from ksparse.Method, with init and step"
        raise TypeError(f"method must be {needed}, got {type(method).__name__}")
    return method


def resolve_weights(rho: str | float | Sequence[float]) -> list[float]:
    """Return the weights to try."""
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
