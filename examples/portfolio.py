"""Portfolios with at most k assets, with skfolio
=================================================

Six of the 20 stocks of a data set of skfolio, with minimum and maximum positions; the effect of the limit k; and a
walk-forward backtest with the tools of skfolio.
"""

import matplotlib.pyplot as plt
import numpy as np
from skfolio.datasets import load_sp500_dataset
from skfolio.model_selection import WalkForward, cross_val_predict
from skfolio.preprocessing import prices_to_returns

import ksparse as ks
from ksparse.skfolio import SparseMeanRisk

returns = prices_to_returns(load_sp500_dataset()).iloc[-1500:]
model = ks.SparsePortfolio(k=6, risk_aversion=5.0, max_weight=0.4, min_weight=0.05).fit(returns)
print(f"6 of 20 assets, at most 40 % and at least 5 % each: {model.result_.message}")
ks.plotting.plot_weights(list(returns.columns), model.weights_)

# %%
# The minimum volatility of a portfolio of at most k assets, for every k.

loss = ks.MeanVariance(np.cov(returns.to_numpy().T), np.zeros(returns.shape[1]), 1.0)
path = ks.k_path(loss, range(1, 16), ks.Simplex())
ks.plotting.plot_frontier(path, 100 * np.sqrt(252 * path.objective), label="minimum annual volatility (%)")

# %%
# Five assets, selected every half year from the two years before.

walk = cross_val_predict(SparseMeanRisk(k=5, min_weight=0.05), returns, cv=WalkForward(train_size=500, test_size=125))
print(
    f"walking forward, {len(walk)} rebalancings: volatility {walk.annualized_standard_deviation:.3f} a year, ", end=""
)
print(f"return {walk.annualized_mean:.3f}")
plt.show()
