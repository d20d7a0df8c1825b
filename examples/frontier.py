"""A mandate: sectors, costs, a frontier, a walk
=============================================

At most 10 of 80 assets, no sector above 35 % or with more than three names, two named assets below a tenth together; every return with its
least risk in one call; and a walk through time in which trades cost and the turnover is limited. The returns are drawn from a factor model.
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
# The frontier: 25 points under these rules, and under a tighter cap on names.

many, few = (ks.SparsePortfolio(k, **rules).frontier(assets.returns, 25) for k in (10, 5))
ax = ks.plotting.plot_efficient_frontier(many, periods=250, assets=assets.returns, label="10 names")
ks.plotting.plot_efficient_frontier(few, periods=250, label="5 names", ax=ax)
print(f"best ratio of return to risk with 10 names {np.nanmax(many.ratios):.4f}, with 5 {np.nanmax(few.ratios):.4f}")

# %%
# The walk: two years to learn from, a month to hold. Where the search knows of the costs it trades less, and here more is left.

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
