"""List all near-optimal models
===============================

A single best model does not show how many other models are nearly as good. ``near_optimal`` lists every support
within 3 % of the best, and states whether the list is complete: variables in every support cannot be replaced.
Resampling the rows addresses the same question.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

X, y, names = ks.datasets.diabetes()
Z, target = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()
found = ks.near_optimal(ks.LeastSquares(Z, target), 5, within=0.03)
print(found)
for support, value in zip(found.supports[:6], found.values[:6], strict=False):
    print(f"{value:12.1f}  {', '.join(names[j] for j in support)}")

# %%
# Inclusion frequency of each measurement.

ks.plotting.plot_frequencies(found, names)

# %%
# Selection frequencies of the best five measurements in fifty samples of half the patients.

rng = np.random.default_rng(0)
halves = [rng.choice(len(target), len(target) // 2, replace=False) for _ in range(50)]
fits = [ks.minimize(ks.LeastSquares(Z[half], target[half]), 5).x for half in halves]
ks.plotting.plot_stability(fits, names)
plt.show()
