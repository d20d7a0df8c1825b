"""Write your own loss, set or method
=====================================

A loss with its least-squares data, a set around a ball, a loss given by h, h′ and h″, and a method. Custom components
run at the speed of built-in ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks

M, N, K = 200, 100, 10


class OwnSquares(ks.Loss):
    """½‖Ax − b‖². Search and lower bounds use the data returned by `squares`, as for `ks.LeastSquares`."""

    convex = True

    def __init__(self, A: np.ndarray, b: np.ndarray) -> None:
        self.A, self.b, self.n = A, b, A.shape[1]

    def image(self, x: np.ndarray) -> np.ndarray:
        """Ax, linear in x."""
        return self.A @ x

    def value_at(self, x: np.ndarray, image: np.ndarray) -> float:
        """φ(x), from Ax."""
        return 0.5 * float(np.sum((image - self.b) ** 2))

    def gradient_at(self, x: np.ndarray, image: np.ndarray) -> np.ndarray:
        """∇φ(x), from Ax."""
        return self.A.T @ (image - self.b)

    def curvature_at(self, x: np.ndarray, image: np.ndarray, d: np.ndarray, image_d: np.ndarray) -> float:
        """dᵀAᵀAd, from Ad."""
        return float(image_d @ image_d)

    def lipschitz(self) -> float:
        """The largest eigenvalue of AᵀA."""
        return float(np.linalg.norm(self.A, 2) ** 2)

    def squares(self) -> ks.Squares:
        """Return the data."""
        return ks.Squares(self.A, self.b)


class LogCosh(ks.DataFit):
    """Σ log cosh((Ax)ᵢ − bᵢ): squares for small residuals, absolute values for large ones."""

    steepest = 1.0  # sup h″
    least = 0.0  # no term is negative

    def h(self, image: np.ndarray) -> np.ndarray:
        """log cosh r, without overflow."""
        r = np.abs(image - self.b)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def slope(self, image: np.ndarray) -> np.ndarray:
        """h′ = tanh r."""
        return np.tanh(image - self.b)

    def bend(self, image: np.ndarray) -> np.ndarray:
        """h″ = 1 − tanh² r."""
        return 1 - np.tanh(image - self.b) ** 2


class ThinBall(ks.ConvexSet):
    """A ball with its projection and violation; restricted to a support it is a `ks.L2Ball`."""

    def __init__(self, radius: float) -> None:
        self.ball = ks.L2Ball(radius)

    def project(self, u: np.ndarray) -> np.ndarray:
        """Return the projection of x."""
        return self.ball.project(u)

    def violation(self, x: np.ndarray) -> float:
        """Return the constraint violation of x."""
        return self.ball.violation(x)

    def restrict(self, support: np.ndarray) -> ks.ConvexSet:
        """Return the ball of fewer variables."""
        return self.ball


class WholeBall(ThinBall):
    """A ball with all optional methods that the search uses."""

    has_multipliers = True

    def restrict(self, support: np.ndarray) -> ks.ConvexSet:
        """Return the ball of fewer variables."""
        return self

    def minimize_quadratic(self, H: np.ndarray, c: np.ndarray, near: np.ndarray) -> Any:
        """Return the best point of a quadratic, with its multiplier."""
        return self.ball.minimize_quadratic(H, c, near)

    def shortfall(self, H: np.ndarray, c: np.ndarray, found: Any, noise: Any) -> float:
        """Return the shortfall that the multiplier proves."""
        return self.ball.shortfall(H, c, found, noise)

    def as_norm_ball(self) -> tuple[int, float]:
        """‖x‖₂ ≤ radius."""
        return 2, self.ball.radius


@dataclass(frozen=True)
class State:
    """State of a method."""

    x: Any  # the point
    l: float  # noqa: E741  # 1/step
    residual: float = float("inf")


class Plain(ks.Method):
    """Proximal DC steps with l = L and the top-(k,1) penalty."""

    name = "plain"

    def penalty(self, k: int, rho: float, C: ks.ConvexSet) -> ks.Penalty:
        """ρ(‖x‖₁ − the k largest)."""
        return ks.TopK1(rho, k)

    def init(self, problem: Any, x: Any) -> State:
        """The state at t = 0."""
        return State(x, problem.lipschitz())

    def step(self, problem: Any, s: State) -> State:
        """The state at t + 1."""
        pull = problem.grad_f(s.x) - problem.subgradient_g2(s.x)
        z = problem.point(problem.prox_g1(s.x.x - pull / s.l, s.l))
        moved = s.l * float(np.linalg.norm(z.x - s.x.x))
        return State(z, s.l, problem.relative(moved, s.x.gradient))


def planted(outliers: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a problem with ten relevant columns of a hundred, and noise."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((M, N)), np.zeros(N)
    x[rng.choice(N, K, replace=False)] = rng.choice([-1.0, 1.0], K) * rng.uniform(0.5, 1.5, K)
    b = A @ x + 0.5 * rng.standard_normal(M)
    b[:outliers] += 100.0
    return A, b


def timed(call: Callable[[], ks.Result]) -> tuple[ks.Result, float]:
    """Return the result, and the least seconds of five calls."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - began)
    return result, min(seconds)


def main() -> None:
    """Solve each problem with the built-in and the user's piece, and print both results."""
    (A, b), (_, spoiled) = planted(), planted(outliers=5)
    ours, own, robust = ks.LeastSquares(A, b), OwnSquares(A, b), LogCosh(A, spoiled)
    ball = ks.L2Ball(2.0)
    rows = [
        ("LeastSquares", lambda: ks.minimize(ours, K), "own squares", lambda: ks.minimize(own, K)),
        ("L2Ball", lambda: ks.minimize(ours, K, ball), "own ball", lambda: ks.minimize(ours, K, WholeBall(2.0))),
        ("L2Ball", lambda: ks.minimize(ours, K, ball), "own thin ball", lambda: ks.minimize(ours, K, ThinBall(2.0))),
        ("Huber", lambda: ks.minimize(ks.Huber(A, spoiled, 1.0), K), "own log cosh", lambda: ks.minimize(robust, K)),
        ("auto", lambda: ks.minimize(robust, K), "own log cosh, apdca", lambda: ks.minimize(robust, K, method="apdca")),
        (
            "pdca",
            lambda: ks.minimize(ours, K, method="pdca"),
            "own method",
            lambda: ks.minimize(ours, K, method=Plain()),
        ),
    ]
    table = Table(title=f"Custom and built-in components, {M} x {N}, k = {K}")
    for column in ("built-in", "custom", "φ, built-in", "φ, custom", "same support", "status", "time ratio"):
        table.add_column(column, justify="left" if column in ("built-in", "custom", "status") else "right")
    ratios = {}
    for name, theirs, own_name, mine in rows:
        (first, seconds), (second, own_seconds) = timed(theirs), timed(mine)
        ratios[f"{own_name} / {name}"] = own_seconds / seconds
        same = "yes" if np.array_equal(first.support, second.support) else "no"
        status = second.status.name if first.status is second.status else f"{first.status.name}, {second.status.name}"
        table.add_row(
            name, own_name, f"{first.fun:.8g}", f"{second.fun:.8g}", same, status, f"{own_seconds / seconds:.2f}"
        )
    Console(width=120).print(table)
    _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.barh(list(ratios), list(ratios.values()), color=ks.plotting.COLOURS[0])
    ax.axvline(1.0, color="0.3", linewidth=1)
    ax.set(xlabel="time with the custom component / time with the built-in one", xscale="log")
    ax.invert_yaxis()
    plt.show()


if __name__ == "__main__":
    main()
