"""Optimality gap by branch and bound
=====================================

With ``gap=``, branch and bound follows the search until the optimality gap is at most that fraction. A callback
receives the progress.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(5)
A = rng.standard_normal((120, 40))
b = A[:, :10] @ np.linspace(0.1, 1.0, 10) + 1.5 * rng.standard_normal(120)  # some are drowned by the noise
loss = ks.LeastSquares(A, b)


def into(told):
    """Return a callback that stores the intermediate results."""

    def listen(intermediate_result):
        told.append(intermediate_result)

    return listen


records = {}
for k in (10, 12, 14):
    told = records[f"k = {k}"] = []
    result = ks.minimize(loss, k, gap=1e-4, max_time=20, callback=into(told))
    print(
        f"k = {k:>2}: {result.fun:.6e} >= {result.lower_bound:.6e}, gap {100 * result.gap:.4f} %, {result.nodes} "
        f"nodes; {result.message}"
    )

# %%
# Display of the last result in a notebook.

result

# %%
# Optimality gap against time.

ks.plotting.plot_gap(records)
plt.show()
