"""skscope: solvers of sparsity-constrained problems whose objective is a JAX function, here in float64.

JAX compiles per shape: the warm-up calls value and gradient once at the shape of the problem itself, untimed. The
functions are made once and get the data as arguments, so that every solve uses the same compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from suite.contenders.base import (
    BUDGETS,
    Answer,
    Contender,
    ignores_signs,
    joined,
    quietly,
    restarted,
    standardised,
    unit,
)
from suite.problem import Problem

STEPS = (1.0, 0.1, 0.01, 0.001, 0.0001)  # of HTP: the best of these, as its authors do it


@cache
def _objectives() -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def least_squares(x: Any, data: Any) -> Any:
        A, b, scale = data
        r = A @ x - b
        return scale * jnp.dot(r, r)

    @jax.jit
    def logistic(x: Any, data: Any) -> Any:
        A, y, ridge = data
        return jnp.sum(jnp.logaddexp(0.0, -y * (A @ x))) + 0.5 * ridge * jnp.dot(x, x)

    @jax.jit
    def component(x: Any, data: Any) -> Any:
        z = data[0] @ x
        # a value at 0 too: skscope passes there, and a NaN ends its process
        return -jnp.dot(z, z) / (jnp.dot(x, x) + 1e-12)

    # skscope counts the arguments of a plain function
    return {
        "least squares": lambda x, data: least_squares(x, data),
        "logistic": lambda x, data: logistic(x, data),
        "component": lambda x, data: component(x, data),
    }


def _data(problem: Problem) -> tuple[Any, ...]:
    import jax.numpy as jnp

    if problem.kind == "component":
        return (jnp.asarray(standardised(problem.A)),)
    A, b = jnp.asarray(problem.A), jnp.asarray(problem.b)
    if problem.kind == "logistic":
        return A, b, problem.ridge
    # as if columns had length 1: steps and tolerances suit any data
    return (
        A,
        b,
        0.5 * problem.n / float(np.vdot(problem.A, problem.A)),
    )


def _start(problem: Problem, data: tuple[Any, ...]) -> dict[str, Any]:
    """Start at the dense component, because a Rayleigh quotient is flat at 0."""
    return (
        {"init_params": np.linalg.svd(np.asarray(data[0]), full_matrices=False)[2][0]}
        if problem.kind == "component"
        else {}
    )


@dataclass(frozen=True)
class Skscope(Contender):
    """A solver of skscope used as documented; `layer` enforces signs by a transformation of x."""

    name: str
    solver: str
    kinds: tuple[str, ...] = ("least squares",)
    layer: bool = False
    budget: float = 0.0  # seconds, for restarts from random supports
    invited: bool = False
    needs = ("skscope", "jax")

    def takes(self, problem: Problem) -> bool:
        return super().takes(problem) and not (self.layer and problem.signs == "none")

    def load(self) -> None:
        super().load()
        import jax

        jax.config.update("jax_enable_x64", True)

    def warm_up(self, problem: Problem) -> None:
        import jax

        super().warm_up(problem)
        data, layers, x = _data(problem), self._layers(problem), np.full(problem.n, 1.0 / problem.n)

        def objective(x: Any, data: Any) -> Any:
            for layer in layers:
                x = layer.transform_params(x)
            return _objectives()[problem.kind](x, data)

        jax.block_until_ready((objective(x, data), jax.value_and_grad(objective)(x, data)))
        x[problem.k :] = 0.0
        for layer in layers:
            np.nonzero(layer.transform_params(x))  # its last step, compiled per shape and number of nonzeros

    def _layers(self, problem: Problem) -> list[Any]:
        from skscope.layer import BoxConstraint, NonNegative

        if not self.layer:
            return []
        if problem.signs == "all":
            return [NonNegative(problem.n)]
        lower = np.full(problem.n, -np.inf)
        lower[problem.nonnegative] = 0.0
        return [BoxConstraint(problem.n, lower, np.inf)]

    def solve(self, problem: Problem, seconds: float) -> Answer:
        import skscope

        objective, data = _objectives()[problem.kind], _data(problem)
        if self.budget:
            solver = getattr(skscope, self.solver)(problem.n, problem.k)

            def again(start: Any) -> tuple[Any, float]:
                x = quietly(lambda: solver.solve(objective, data=data, init_support_set=start))
                return np.asarray(x, dtype=np.float64), float(solver.objective_value)

            return Answer(restarted(again, problem, self.budget), "the best of its restarts")
        best, value = np.zeros(problem.n), np.inf
        for options in [{"step_size": step} for step in STEPS] if self.solver == "HTPSolver" else [{}]:
            solver = getattr(skscope, self.solver)(problem.n, problem.k, **options)
            solve = partial(solver.solve, objective, data=data, layers=self._layers(problem), **_start(problem, data))
            try:
                x = quietly(solve)
            except ValueError:
                if options:
                    continue  # too long a step diverges
                raise
            if float(solver.objective_value) < value:
                best, value = np.asarray(x, dtype=np.float64), float(solver.objective_value)
        steps = "the best of five step sizes" if self.solver == "HTPSolver" else ""
        return Answer(
            unit(best) if problem.kind == "component" else best,
            joined(steps, "keeps the signs by a layer" if self.layer else ignores_signs(problem)),
        )


CONTENDERS: list[Contender] = [
    Skscope("skscope Scope", "ScopeSolver", ("least squares", "logistic", "component")),
    Skscope("skscope Scope, layer", "ScopeSolver", layer=True),
    Skscope("skscope HTP", "HTPSolver"),
    Skscope("skscope GraSP", "GraspSolver"),
    Skscope("skscope FoBa", "FobaSolver"),
    Skscope("skscope OMP", "OMPSolver"),
    *(
        Skscope(
            f"skscope Scope, {seconds:g} s", "ScopeSolver", ("least squares", "logistic"), budget=seconds, invited=True
        )
        for seconds in BUDGETS
    ),
]
