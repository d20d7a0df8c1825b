"""Sector limits and minimum positions
======================================

At most 12 of 120 assets, at most 25 % per sector, and no position below 2 %; the optimality gap is proved to be at
most 0.1 %. The returns are drawn from a factor model.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

assets = ks.datasets.factor_model(120, 760, seed=3)
sectors = [f"sector {j % 6}" for j in range(120)]
model = ks.SparsePortfolio(12, groups=sectors, group_caps=0.25, min_weight=0.02, gap=1e-3, max_time=60).fit(
    assets.returns[:750]
)
print(f"{np.count_nonzero(model.weights_)} assets, sum {model.weights_.sum():.12f}; {model.result_.message}")
for sector in sorted(set(sectors)):
    held = model.weights_[[j for j, name in enumerate(sectors) if name == sector]]
    print(f"{sector}: {100 * held.sum():5.1f} % in {np.count_nonzero(held)} assets")

# %%
# The weights.

ks.plotting.plot_weights(assets.names, model.weights_)

# %%
# Rebalancing ten days later with trading costs: a second fit only trades where the gain exceeds the costs.

later = assets.returns[10:]
moved = ks.SparsePortfolio(
    12, groups=sectors, group_caps=0.25, min_weight=0.02, previous_weights=model.weights_, turnover_cost=2e-5
).fit(later)
print(f"turnover {moved.turnover_:.3f}; without a cost of trading it would be ", end="")
free = ks.SparsePortfolio(12, groups=sectors, group_caps=0.25, min_weight=0.02, previous_weights=model.weights_).fit(
    later
)
print(f"{free.turnover_:.3f}")
plt.show()
