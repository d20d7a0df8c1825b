"""Solutions for every k
========================

``k_path`` computes the best solution for each k. Each k starts from its neighbours, and the objective never increases
with k. A variable of the best pair need not be in the best triple, so lines may end.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(2)
A = rng.standard_normal((120, 60))
A[:, 5] = A[:, [0, 1, 2]].sum(axis=1) + 0.4 * rng.standard_normal(120)  # stands for three, until there is room for them
b = A[:, :4] @ np.array([2.0, 1.8, 1.6, 1.0]) + 0.5 * A[:, 30] + rng.standard_normal(120)
path = ks.k_path(ks.LeastSquares(A, b), range(1, 13))
print(path)

# %%
# Display in a notebook.

path

# %%
# The entries of each solution.

ks.plotting.plot_path(path, limit=8)

# %%
# The objective for each k.

ks.plotting.plot_frontier(path)
plt.show()
