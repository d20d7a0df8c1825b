"""Convergence of the paper's methods
=====================================

Penalised regression as in Table 2 of the paper, at a quarter of its size: the proximal DC algorithm, its accelerated
form, the form with extrapolation, and two methods that use the prox of the whole penalty.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(0)
A = rng.standard_normal((180, 640))
A /= np.linalg.norm(A, axis=0)
x_true = np.zeros(640)
x_true[rng.choice(640, 20, replace=False)] = rng.standard_normal(20)
loss, penalty = ks.LeastSquares(A, A @ x_true - 0.01 * rng.standard_normal(180)), ks.L1MinusL2(5e-4)
runs = {
    name: ks.minimize_penalized(loss, penalty, method=name, tol=1e-9, max_iter=3000)
    for name in ("pdca", "apdca", "pdcae", "gist", "nmapg")
}
for name, run in runs.items():
    print(f"{name:>6}: F = {run.fun:.7f} after {run.nit} iterations, {run.support.size} nonzeros; {run.status.name}")

# %%
# Objective against iterations.

ks.plotting.plot_convergence(runs)

# %%
# Objective against products with the data.

ks.plotting.plot_convergence(runs, "products")
plt.show()
