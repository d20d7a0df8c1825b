"""Limits on assets per group, against every feasible portfolio."""

from itertools import combinations

import numpy as np
import pytest
from test_portfolio import best_on, market

import ksparse as ks
from conftest import sweep
from ksparse.portfolio.problem import portfolio
from ksparse.portfolio.rules import AssetCountLimits, Universe, portfolio_arguments
from ksparse.portfolio.solve import solve_portfolio

LABELS = ["a", "a", "a", "b", "b", "c"]


@pytest.mark.parametrize("seed", sweep(range(8), 3))
def test_counts_against_enumeration(seed):
    """With and without trades, a short side and a minimum weight, on every allowed support."""
    rng = np.random.default_rng(seed)
    n, k, short, trades = 6, 3, seed % 4 == 1, seed % 2 == 0
    V, r = market(seed, n)
    floor = 0.05 if seed % 3 else 0.0
    given = {"a": 1, "b": (1 if floor else 0, 2)} if seed % 4 else {"c": 0, "a": 2}
    held = rng.dirichlet(np.ones(n)) if trades else np.zeros(n)
    cost, most = np.full(n, 1e-4 if trades else 0.0), 1.2 if trades else None
    before = {"previous_weights": held, "turnover_cost": cost, "max_turnover": most} if trades else {}
    wanted = portfolio(
        V, r, risk_aversion=5.0, max_weight=0.8, long_only=not short, max_short=0.3 if short else None,
        **portfolio_arguments(Universe(n), groups=LABELS, group_cardinalities=given, **before),
    )  # fmt: skip
    counts = wanted.counts

    def sides(S):
        return [
            tuple(1 if s else -1 for s in np.binary_repr(i, len(S)).translate({48: 0, 49: 1}))
            for i in range(2 ** len(S))
        ]

    best = np.inf
    for size in (1, 2, 3):
        for S in combinations(range(n), size):
            chosen = np.isin(np.arange(n), S).astype(float)
            if not counts.is_satisfied(chosen):
                continue
            for signs in sides(S) if short else [(1,) * size]:
                best = min(best, best_on(
                    S, signs, V, r, 5.0, lower=wanted.lower, upper=wanted.upper, total=1.0, G=np.zeros((0, n)),
                    h=np.zeros(0), held=held, cost=cost, turnover=most, short=0.3 if short else None, floor=floor,
                ))  # fmt: skip
    if best == np.inf:
        with pytest.raises(ks.InfeasibleError):
            solve_portfolio(wanted, k, min_weight=floor)
        return
    found = solve_portfolio(wanted, k, min_weight=floor)
    assert found.fun <= best + 1e-8
    assert found.fun == pytest.approx(wanted.value(found.x), abs=1e-12)
    assert counts.is_satisfied(found.x)
    assert np.count_nonzero(found.x) <= k
    assert wanted.violation(found.x) <= 1e-9


@pytest.mark.parametrize(
    ("given", "options", "k", "error", "words"),
    [
        (
            {"a": 1},
            {"forced_in": [0, 1]},
            3,
            ks.InfeasibleError,
            "allows at most 1 of 'a', but 2 are forced in",
        ),
        ({"c": (2, 2)}, {}, 3, ks.InfeasibleError, "requires at least 2 of 'c', of which 1 can be used"),
        ({"a": (2, 3), "b": (2, 2)}, {}, 3, ks.InfeasibleError, "need 4 assets, more than k = 3"),
        ({"z": 1}, {}, 3, ValueError, "names 'z', which is not among the groups"),
        ({"a": (3, 1)}, {}, 3, ValueError, "at least 3 and at most 1 of 'a'"),
        ({"a": 1.5}, {}, 3, TypeError, "group_cardinalities for 'a'"),
        ("a", {}, 3, TypeError, "one number or a mapping"),
    ],
)
def test_counts_that_cannot_be_are_named(given, options, k, error, words):
    V, r = market(0, 6)
    with pytest.raises(error, match=words):
        solve_portfolio(
            portfolio(
                V,
                r,
                long_only=True,
                **portfolio_arguments(Universe(6), groups=LABELS, group_cardinalities=given, **options),
            ),
            k,
            min_weight=0.05,
        )


def test_a_least_number_needs_a_floor_and_groups_must_not_overlap():
    V, r = market(0, 6)
    with pytest.raises(ValueError, match="requires min_weight > 0"):
        solve_portfolio(
            portfolio(
                V,
                r,
                long_only=True,
                **portfolio_arguments(Universe(6), groups=LABELS, group_cardinalities={"a": (1, 2)}),
            ),
            3,
        )
    with pytest.raises(ValueError, match="share asset 1: groups with limits must not overlap"):
        AssetCountLimits.read({"x": 1, "y": 1}, {"x": np.array([0, 1]), "y": np.array([1, 2])}, 6)
    with pytest.raises(ValueError, match="group_cardinalities requires groups"):
        portfolio_arguments(Universe(6), group_cardinalities=2)


def test_counts_are_proved():
    V, r = market(3, 30)
    labels = [f"s{i % 5}" for i in range(30)]
    wanted = portfolio(
        V,
        r,
        objective="minimize_risk",
        long_only=True,
        **portfolio_arguments(Universe(30), groups=labels, group_cardinalities=1),
    )
    found = solve_portfolio(wanted, 5, gap=1e-3)
    assert found.status is ks.Status.OPTIMAL
    assert found.fun - found.lower_bound <= 1e-3 * found.fun
    assert found.lower_bound <= found.fun
    assert wanted.counts.is_satisfied(found.x)
