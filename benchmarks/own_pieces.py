"""Pieces written by a user and those of the library in one run: same answer, same status, ratio of their times.

The own pieces are those of examples/own_pieces.py: ½‖Ax − b‖² as a `Loss` with squares(), a ball that passes on all
methods, and one that only projects and restricts. Calls alternate, so that both run under the same load; below 1 the
user's piece is faster.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ksparse as ks

REPEATS = 7
SIZES = ((200, 100), (1000, 2000))
K = 10
OWN = runpy.run_path(str(Path(__file__).resolve().parents[1] / "examples" / "own_pieces.py"))
Solve = Callable[[], ks.Result]


def problems(m: int, n: int) -> Iterator[tuple[str, str, Solve, Solve]]:
    """Yield the problem, the user's piece, and the solves with the built-in and with the user's piece."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((m, n)), np.zeros(n)
    x[rng.choice(n, K, replace=False)] = rng.standard_normal(K)
    b = A @ x + 1.5 * rng.standard_normal(m)
    ours, own = ks.LeastSquares(A, b), OWN["OwnSquares"](A, b)
    for C in (ks.WholeSpace(), ks.Nonnegative(), ks.Box(-1.0, 1.0), ks.Simplex(2.0), ks.L2Ball(1.0)):
        yield f"{m} x {n}, {C}", "own squares", lambda C=C: ks.minimize(ours, K, C), lambda C=C: ks.minimize(own, K, C)
    apdca = {"method": "apdca", "rho": 1.0}
    yield (
        f"{m} x {n}, apdca",
        "own squares",
        lambda: ks.minimize(ours, K, **apdca),
        lambda: ks.minimize(own, K, **apdca),
    )
    for radius in (1.0, 100.0):
        ball = ks.L2Ball(radius)
        for name in ("WholeBall", "ThinBall"):
            mine = OWN[name](radius)
            yield (
                f"{m} x {n}, {ball}",
                name,
                lambda C=ball: ks.minimize(ours, K, C),
                lambda C=mine: ks.minimize(ours, K, C),
            )


def in_turn(first: Solve, second: Solve) -> tuple[ks.Result, ks.Result, list[float], list[float]]:
    """Return both results, and the seconds of every call."""
    seconds: tuple[list[float], list[float]] = ([], [])
    found: list[ks.Result] = []
    for _ in range(REPEATS):
        found = []
        for call, times in zip((first, second), seconds, strict=True):
            began = time.perf_counter()
            found.append(call())
            times.append(time.perf_counter() - began)
    return found[0], found[1], *seconds


def main() -> None:
    console = Console(width=140)
    table = Table(title=f"Own and built-in pieces, k = {K} (medians of {REPEATS} runs)")
    for column in ("problem", "own piece", "same x", "ended", "ended, own", "ms", "ms, own", "time ratio"):
        table.add_column(column, justify="right" if "ms" in column or column == "time ratio" else "left")
    for size in SIZES:
        for name, piece, theirs, mine in problems(*size):
            ours, own, seconds, own_seconds = in_turn(theirs, mine)
            off = float(np.abs(ours.x - own.x).max())
            table.add_row(
                name, piece, "yes" if off <= 1e-9 else f"off by {off:.1g}",
                *(f"{r.status.name.lower().replace('_', '-')}{', proved' if r.proved else ''}" for r in (ours, own)),
                f"{1e3 * np.median(seconds):.1f}", f"{1e3 * np.median(own_seconds):.1f}",
                f"{np.median(own_seconds) / np.median(seconds):.2f}",
            )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
