"""Index tracking with few stocks
=================================

``SparsePortfolio.fit(X, y)`` selects the k stocks whose long-only portfolio is closest to the returns y of an index.
With ``max_tracking_error`` it optimises the objective within that tracking error instead.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

assets = ks.datasets.factor_model(100, 1000, seed=1)
index = assets.returns @ np.random.default_rng(0).dirichlet(np.ones(100))  # an index of all hundred
past, future = slice(0, 750), slice(750, None)
errors = {}
for k in (3, 5, 10, 20, 40):
    model = ks.SparsePortfolio(k).fit(assets.returns[past], index[past])
    errors[k] = [-model.score(assets.returns[part], index[part]) * 1e4 for part in (past, future)]
    print(
        f"{k:>2} stocks: tracking error {errors[k][0]:5.1f} basis points a day, {errors[k][1]:5.1f} on the days after"
    )

# %%
# Tracking error against the number of stocks, on the fitted days and on later days.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for position, (name, column) in enumerate((("fitted", 0), ("after", 1))):
    colour, marker, dash = ks.plotting.style(name, position)
    ax.plot(
        list(errors),
        [error[column] for error in errors.values()],
        color=colour,
        marker=marker,
        linestyle=dash,
        label=name,
    )
ax.set(xlabel="k (maximum number of stocks)", ylabel="tracking error (basis points per day)", ylim=(0, None))
ax.legend(frameon=False)
ax.grid(alpha=0.3)

# %%
# Ten stocks and the index on days after the fit.

model = ks.SparsePortfolio(10).fit(assets.returns[past], index[past])
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(np.cumprod(1 + index[future]), color="0.6", linewidth=4, label="index of 100")
ax.plot(np.cumprod(1 + model.predict(assets.returns[future])), color=ks.plotting.COLOURS[1], label="10 stocks")
ax.set(xlabel="days", ylabel="value")
ax.legend(frameon=False)

# %%
# The minimum variance of 10 stocks for different limits of the tracking error.

limits, risks = [1.0 + 0.25 * step for step in range(8)], []
closest = model.tracking_error_
for share in limits:
    near = ks.SparsePortfolio(10, objective="minimize_risk", max_tracking_error=share * closest * (1 + 1e-9)).fit(
        assets.returns[past], index[past]
    )
    risks.append(100 * np.sqrt(250 * near.variance_))
    print(f"tracking error {1e4 * near.tracking_error_:5.1f} basis points a day: volatility {risks[-1]:.2f} % a year")
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot([1e4 * share * closest for share in limits], risks, marker="o", color=ks.plotting.COLOURS[0])
ax.set(xlabel="limit of the tracking error (basis points per day)", ylabel="minimum annual volatility (%)")
ax.grid(alpha=0.3)
plt.show()
