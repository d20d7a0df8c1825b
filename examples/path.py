"""Every k along one path
======================

``k_path`` gives the best answer for each k: every k starts from its neighbours, and the objective never rises. Lines may end: a
variable that is in the best pair need not be in the best triple.
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
# The same as a notebook shows it.

path

# %%
# The entries of each answer.

ks.plotting.plot_path(path, limit=8)

# %%
# What each more variable buys.

ks.plotting.plot_frontier(path)
plt.show()
