"""All the models that are nearly as good
======================================

One best model hides how many others come close. ``near_optimal`` lists every support within 3 % of the best, and says whether the
list is complete: variables in all of them are sure, the others may be exchanged. Resampling the rows asks the same in another
way.
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
# In which share of them each measurement is.

ks.plotting.plot_frequencies(found, names)

# %%
# The same of the best five in fifty samples of half the patients.

rng = np.random.default_rng(0)
halves = [rng.choice(len(target), len(target) // 2, replace=False) for _ in range(50)]
fits = [ks.minimize(ks.LeastSquares(Z[half], target[half]), 5).x for half in halves]
ks.plotting.plot_stability(fits, names)
plt.show()
