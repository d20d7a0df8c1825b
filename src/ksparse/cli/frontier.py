"""`ksparse portfolio --frontier`: every mean return with its least variance, under the same rules."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from ksparse.cli.exits import InputError, exit_code, worst
from ksparse.cli.output import Output
from ksparse.datasets import Assets
from ksparse.models.frontier import frontier
from ksparse.models.portfolio import Portfolio
from ksparse.models.solve_portfolio import solve_portfolio
from ksparse.result import Status


def refuse_beside_frontier(options: argparse.Namespace) -> None:
    """What a frontier has no use for."""
    given = {"--risk-aversion": options.risk_aversion, "--target-return": options.target_return, "--report": options.report}
    given |= {"--cost": None if options.cost == "0" else options.cost}
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{option} has no meaning beside --frontier: leave one of them out")
    if options.index is not None and options.max_tracking_error is None:
        raise InputError("--index has no meaning beside --frontier without --max-tracking-error")
    if options.frontier < 2:
        raise InputError(f"--frontier must be at least 2 points, got {options.frontier}")


def show_frontier(assets: Assets, wanted: Portfolio, k: int, options: argparse.Namespace, output: Output) -> int:
    """Solve, show, write: one row per point, with the weights in the file."""
    how = {"min_weight": options.min_weight, "random_state": options.seed, "effort": options.effort, "gap": options.gap}
    points = frontier(
        assets.V, assets.r, wanted, k, options.frontier, assets.names, partial(solve_portfolio, max_time=options.limit, **how)
    )
    held = np.flatnonzero(points.weights.any(axis=0))
    names = [assets.names[j] for j in held]
    rows = list(zip(points.mean_returns.tolist(), points.deviations.tolist(), points.weights, points.statuses, strict=True))
    if options.out is not None:
        lines = [(mean, risk, status.lower(), *map(float, x[held])) for mean, risk, x, status in rows]
        output.write_csv(options.out, ("mean return", "deviation", "status", *names), lines)
    output.table(
        f"{len(points)} points, at most {k} of {len(assets.names)} assets", ("mean return", "deviation", "assets", "status"),
        [(f"{mean:.4e}", f"{risk:.4e}", str(np.count_nonzero(x)), status.lower().replace("_", " ")) for mean, risk, x, status in rows],
    )  # fmt: skip
    output.written(options.out, None)
    output.json({
        "command": "portfolio", "k": options.k, "frontier": [
            {"mean_return": mean, "deviation": risk, "status": status, "weights": {assets.names[j]: float(x[j]) for j in np.flatnonzero(x)}}
            for mean, risk, x, status in rows
        ],
    })  # fmt: skip
    return worst(exit_code(Status[status]) for status in points.statuses)
