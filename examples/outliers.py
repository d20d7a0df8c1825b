"""The Huber loss for outliers, the Poisson loss for counts
===========================================================

The Huber loss is robust to outliers; the Poisson loss models counts. Both use the same k, sets and search as least
squares.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(4)
A = rng.standard_normal((200, 80))
x_true = np.zeros(80)
x_true[[3, 20, 41, 66]] = [2.0, -1.5, 1.0, 0.8]
b = A @ x_true + 0.5 * rng.standard_normal(200)
b[:12] += 40.0  # a dozen typing errors
for name, loss in (("least squares", ks.LeastSquares(A, b)), ("Huber", ks.Huber(A, b, delta=1.0))):
    result = ks.minimize(loss, 4)
    print(f"{name:>14}: {dict(zip(result.support.tolist(), result.x[result.support].round(2).tolist(), strict=True))}")

# %%
# The path of the Huber loss: the four relevant features are selected first, and no other improves the fit much.

path = ks.k_path(ks.Huber(A, b, delta=1.0), range(1, 9))
ks.plotting.plot_frontier(path, label="Huber loss")

# %%
# Counts, with a log-linear mean.

counts = rng.poisson(np.exp(0.5 + A @ (x_true / 4)))
model = ks.SparseRegressor(4, loss="poisson").fit(A, counts)
print("counts:", {int(j): round(float(model.coef_[j]), 2) for j in np.flatnonzero(model.coef_)})
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(model.predict(A), counts, ".", color=ks.plotting.COLOURS[0], alpha=0.6)
ax.plot([0, counts.max()], [0, counts.max()], color="0.5", linewidth=1)
ax.set(xlabel="mean of the model", ylabel="count")
plt.show()
