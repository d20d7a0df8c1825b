"""Synthetic control with few donors
====================================

Match a treated unit before the intervention by a mixture of other units, with nonnegative weights that sum to 1. A
mixture of at most four donors is easy to interpret, and its weights satisfy the constraints exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(7)
periods, before, donors = 60, 40, 30
common = np.cumsum(rng.standard_normal((periods, 3)), axis=0)
units = 20 + common @ rng.uniform(0, 1, (3, donors)) + 0.4 * rng.standard_normal((periods, donors))
treated = units[:, [2, 11, 17]] @ np.array([0.5, 0.3, 0.2]) + 0.2 * rng.standard_normal(periods)
treated[before:] += 4.0  # what the intervention did

loss = ks.LeastSquares(units[:before], treated[:before])
result = ks.minimize(loss, 4, ks.Simplex())
print(f"{result.message}; the weights sum to {result.x.sum():.15g}, the smallest is {result.x.min():g}")
for j in result.support:
    print(f"  donor {j:>2}: {result.x[j]:.3f}")
print(f"effect: {np.mean(treated[before:] - units[before:] @ result.x):.2f}")

# %%
# The treated unit and its control.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(treated, color=ks.plotting.COLOURS[6], label="treated")
ax.plot(
    units @ result.x, color=ks.plotting.COLOURS[1], linestyle="--", label=f"control of {result.support.size} donors"
)
ax.axvline(before - 0.5, color="0.5", linewidth=1)
ax.set(xlabel="period", ylabel="outcome")
ax.legend(frameon=False)

# %%
# Weights of the donors for every k.

ks.plotting.plot_path(ks.k_path(loss, range(1, 9), ks.Simplex()), [f"donor {j}" for j in range(donors)])
plt.show()
