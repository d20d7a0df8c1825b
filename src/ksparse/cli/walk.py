"""`ksparse portfolio --walk`: a portfolio through time, fitted on a window, held, rebalanced from what is held."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from ksparse.cli.exits import LIMIT, InputError, exit_code, worst
from ksparse.cli.mandate import in_options, read_budget, said_mandate
from ksparse.cli.output import Output
from ksparse.datasets import Assets
from ksparse.errors import InfeasibleError


def refuse_beside_walk(options: argparse.Namespace) -> None:
    """What a walk has no use for."""
    for option, value in {"--frontier": options.frontier, "--report": options.report}.items():
        if value is not None:
            raise InputError(f"{option} has no meaning beside --walk: leave one of them out")
    steps(options.walk)


def steps(text: str) -> tuple[int, int]:
    """Window and step."""
    window, _, step = text.partition(":")
    if not (window.isdigit() and step.isdigit() and int(window) >= 2 and int(step) >= 1):
        raise InputError(f"--walk must be WINDOW:STEP in whole numbers of rows, such as 500:20, got {text!r}")
    return int(window), int(step)


def show_walk(assets: Assets, index: Any, k: int, options: argparse.Namespace, output: Output) -> int:
    """Walk, show, write: one row per rebalancing, with the weights in the file."""
    import pandas as pd
    from sklearn.exceptions import ConvergenceWarning

    from ksparse.estimators import SparsePortfolio  # here: who does not walk need not wait for it

    window, step = steps(options.walk)
    model = SparsePortfolio(
        k, objective="minimize_risk" if options.min_variance else None, risk_aversion=options.risk_aversion,
        target_return=options.target_return, long_only=options.long_only, max_weight=options.max_weight, min_weight=options.min_weight,
        budget=read_budget(options.budget), max_short=options.max_short, max_tracking_error=options.max_tracking_error,
        effort=options.effort, gap=options.gap, max_time=options.limit, random_state=options.seed, **said_mandate(options, assets.names),
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said once, below
            walk = model.walk_forward(pd.DataFrame(assets.returns, columns=assets.names), index, window=window, step=step)
    except ValueError as error:
        raise (InfeasibleError if isinstance(error, InfeasibleError) else InputError)(in_options(error)) from error
    codes = [exit_code(status) for status in walk.statuses]
    cut = codes.count(LIMIT)
    held = np.flatnonzero(walk.weights.any(axis=0))
    rows = list(zip(walk.starts.tolist(), walk.weights, walk.turnovers.tolist(), walk.costs.tolist(), strict=True))
    if options.out is not None:
        lines = [(start, turnover, cost, *map(float, x[held])) for start, x, turnover, cost in rows]
        output.write_csv(options.out, ("row", "turnover", "cost", *(assets.names[j] for j in held)), lines)
    output.table(
        f"{len(walk)} rebalancings, at most {k} of {len(assets.names)} assets", ("from return", "assets", "turnover", "cost"),
        [(str(start), str(np.count_nonzero(x)), f"{turnover:.4f}", f"{cost:.4e}") for start, x, turnover, cost in rows],
    )  # fmt: skip
    mean, deviation = float(walk.returns.mean()), float(walk.returns.std(ddof=1)) if walk.returns.size > 1 else 0.0
    output.say(f"per period, after costs: mean return {mean:.4e}, deviation {deviation:.4e}; 1 has grown to {walk.wealth[-1]:.6g}")
    if cut:
        output.say(f"{cut} of {len(walk)} rebalancings were cut short by the limit")
    output.written(options.out, None)
    output.json({
        "command": "portfolio", "k": options.k, "mean_return": mean, "deviation": deviation, "wealth": float(walk.wealth[-1]), "walk": [
            {"row": start, "turnover": turnover, "cost": cost, "weights": {assets.names[j]: float(x[j]) for j in np.flatnonzero(x)}}
            for start, x, turnover, cost in rows
        ],
    })  # fmt: skip
    return worst(codes)
