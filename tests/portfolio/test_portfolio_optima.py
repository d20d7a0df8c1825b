"""Portfolios are optimal: compared with all supports and with published values."""

from itertools import combinations

import numpy as np
import pytest

import ksparse as ks
from conftest import data_file
from ksparse.portfolio.problem import portfolio


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, ks.Hyperplane),
        ({"long_only": True}, ks.Simplex),
        ({"long_only": True, "max_weight": 0.6}, ks.BudgetBox),
        ({"max_weight": 0.6}, ks.BudgetBox),
        ({"long_only": True, "max_weight": 0.6, "target_return": 0.0006}, ks.Polyhedron),
        ({"target_return": 0.001, "risk_aversion": 3.0}, ks.Polyhedron),
    ],
)
def test_portfolios_obey_and_are_best_of_all_supports(options, kind, rng):
    returns = rng.standard_normal((300, 8)) * rng.uniform(0.005, 0.03, 8) + rng.uniform(-0.001, 0.002, 8)
    V, r = np.cov(returns.T), returns.mean(axis=0)
    wanted = portfolio(V, r, **options)
    loss, C = wanted.loss, wanted.C
    assert isinstance(C, kind)
    result = ks.minimize(loss, 3, C)
    x = result.x
    assert abs(x.sum() - 1) <= 1e-12
    assert np.count_nonzero(x) <= 3
    assert not options.get("long_only") or x.min() >= 0
    assert np.abs(x).max() <= options.get("max_weight", np.inf)
    assert r @ x >= options.get("target_return", -np.inf) - 1e-15
    alpha = options.get("risk_aversion", None if "target_return" in options else 10.0)
    value = x @ V @ x if alpha is None else alpha * x @ V @ x - r @ x
    assert result.fun == pytest.approx(value, rel=1e-9)
    for subset in combinations(range(8), 3):
        held = np.setdiff1d(np.arange(8), subset)
        try:
            other = ks.minimize(loss, 3, C, forced_out=held)
        except ks.InfeasibleError:
            continue
        assert result.fun <= other.fun + 1e-12


def test_the_published_portfolio_of_or_library_is_reached():
    """OR-Library port1, at most 5 assets of at least 1 % each: the published variance for one exact target return."""
    data = np.load(data_file("orlib_port1_n31.npz"))
    V = data["corr"] * np.outer(data["sd"], data["sd"])
    t = 25
    target, published = float(data["cc_rho"][t]), float(data["cc_K5_var"][t])
    wanted = portfolio(V, data["mu"], long_only=True, target_return=target)
    loss, C = wanted.loss, wanted.C
    result = ks.minimize(loss, 5, C, min_nonzero=0.01)
    assert result.fun <= published * 1.0005
    assert data["mu"] @ result.x >= target - 1e-12
