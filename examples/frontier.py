"""Efficient frontier and walk-forward backtest
===============================================

Portfolios of at most 10 of 80 assets: at most 35 % and three assets per sector, and at most 10 % in two assets
together. The efficient frontier is computed in one call; the walk-forward backtest has trading costs and a turnover
limit. The returns are drawn from a factor model.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

assets = ks.datasets.factor_model(80, 900, seed=5)
rules = {
    "max_weight": 0.25,
    "min_weight": 0.02,
    "groups": [f"sector{j % 5}" for j in range(80)],
    "group_caps": 0.35,
    "group_cardinalities": 3,
    "linear_constraints": ["x3 + x7 <= 0.1", "sector0 >= 0.05"],
}

# %%
# The frontier: 25 points under these constraints, and with fewer assets.

many, few = (ks.SparsePortfolio(k, **rules).frontier(assets.returns, 25) for k in (10, 5))
ax = ks.plotting.plot_efficient_frontier(many, periods=250, assets=assets.returns, label="10 assets")
ks.plotting.plot_efficient_frontier(few, periods=250, label="5 assets", ax=ax)
print(f"best ratio of return to risk with 10 assets {np.nanmax(many.ratios):.4f}, with 5 {np.nanmax(few.ratios):.4f}")

# %%
# The backtest: fit on two years, hold for a month. If costs are part of the objective, fewer trades are made, and the
# final wealth is higher.

fig, ax = plt.subplots()
for label, trades in {
    "trades free to the search": {},
    "costs in the search": {"turnover_cost": 2e-3, "max_turnover": 0.5},
}.items():
    walk = ks.SparsePortfolio(10, risk_aversion=5.0, **rules, **trades).walk_forward(
        assets.returns, window=500, step=20
    )
    net = walk.returns.copy()
    if not trades:  # what it did not know of is paid all the same
        net[walk.starts[1:] - walk.starts[0]] -= 2e-3 * walk.turnovers[1:]
    print(f"{label}: turnover {walk.turnovers[1:].mean():.3f} a month, wealth {np.prod(1 + net):.3f}")
    ax.plot(walk.rows, np.cumprod(1 + net), label=label)
ax.set(xlabel="day", ylabel="wealth after costs")
ax.legend()
plt.show()
