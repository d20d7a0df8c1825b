"""The rules of a mandate, as users write them, for `portfolio`: one reading for the estimator, the skfolio face and the command line."""

from __future__ import annotations

from typing import Any

import numpy as np

from ksparse.models.cardinalities import Cardinalities
from ksparse.models.rules import Rows, Universe, group_limits, sentences
from ksparse.util.checks import check_number


def mandate(
    universe: Universe,
    *,
    min_weights: Any = None,
    max_weights: Any = None,
    groups: Any = None,
    group_caps: Any = None,
    group_floors: Any = None,
    group_cardinalities: Any = None,
    linear_constraints: Any = None,
    forced_in: Any = None,
    forced_out: Any = None,
    previous_weights: Any = None,
    turnover_cost: Any = 0.0,
    max_turnover: float | None = None,
) -> dict[str, Any]:
    """Keyword arguments of `portfolio` from bounds and costs by name, groups with their limits, sentences and names."""
    n, members = universe.n, universe.groups(groups)
    if members and all(limit is None for limit in (group_caps, group_floors, group_cardinalities, linear_constraints)):
        raise ValueError(
            "groups has no effect without group_caps, group_floors, group_cardinalities or linear_constraints"
        )
    limits = group_limits(n, members, group_caps, "group_caps", 1.0) + group_limits(
        n, members, group_floors, "group_floors", -1.0
    )
    costs = universe.numbers(turnover_cost, "turnover_cost", 0.0)
    if not (np.isfinite(costs).all() and costs.min(initial=0.0) >= 0):
        raise ValueError(f"turnover_cost must be >= 0 and finite, got {turnover_cost!r}")
    if max_turnover is not None:
        check_number(max_turnover, "max_turnover", at_least=0)
    if previous_weights is None:
        for asked, name in ((costs.any(), "turnover_cost"), (max_turnover is not None, "max_turnover")):
            if asked:
                raise ValueError(f"{name} needs previous_weights to trade from")
    held = None if previous_weights is None else universe.numbers(previous_weights, "previous_weights", 0.0)
    if held is not None and not np.isfinite(held).all():
        raise ValueError(
            f"previous_weights must be finite, asset {int((~np.isfinite(held)).argmax())} has {held[~np.isfinite(held)][0]:g}"
        )
    return {
        "min_weights": None if min_weights is None else universe.numbers(min_weights, "min_weights", -np.inf),
        "max_weights": None if max_weights is None else universe.numbers(max_weights, "max_weights", np.inf),
        "rows": Rows.of(n, limits).and_(sentences(linear_constraints, universe, members)),
        "forced_in": () if forced_in is None else universe.members(forced_in, "forced_in"),
        "forced_out": () if forced_out is None else universe.members(forced_out, "forced_out"),
        "counts": Cardinalities.read(group_cardinalities, members, n),
        "held": held,
        "cost": costs,
        "max_turnover": max_turnover,
    }
