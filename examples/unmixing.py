"""Hyperspectral unmixing: many regressions on one matrix
=========================================================

A pixel of a hyperspectral image is a mixture of a few spectra of a library: a nonnegative sparse regression.
``minimize_many`` solves the thousand regressions of an image on one library in one call.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

BANDS, MINERALS, SIDE, K = 120, 80, 32, 3
rng = np.random.default_rng(0)

# %%
# A library of smooth, highly correlated spectra, as those of minerals are.

wave = np.linspace(0.0, 1.0, BANDS)[:, None]
centre, width, depth = rng.uniform(0, 1, (3, 1, MINERALS, 4))
dips = 0.5 * depth * np.exp(-((wave[:, :, None] - centre) ** 2) / (0.02 + 0.1 * width) ** 2)
A = np.clip(0.9 - dips.sum(axis=2), 0.05, None)

# %%
# An image: four minerals in soft patches, at most three of them in a pixel, and noise.

row, column = np.mgrid[0:SIDE, 0:SIDE] / SIDE
patches = [
    np.exp(-8 * ((row - r) ** 2 + (column - c) ** 2)) for r, c in ((0.2, 0.3), (0.7, 0.2), (0.4, 0.8), (0.9, 0.9))
]
X = np.zeros((MINERALS, SIDE * SIDE))
X[rng.choice(MINERALS, 4, replace=False)] = np.array(patches).reshape(4, -1)
X[X < np.sort(X, axis=0)[-K]] = 0.0
X /= X.sum(axis=0)
B = A @ X + 0.002 * rng.standard_normal((BANDS, SIDE * SIDE))

# %%
# All pixels at once. Each answer is judged from the raw data, and ``batch[i]`` is the full result of pixel i.

batch = ks.minimize_many(A, B, K, ks.Nonnegative())
truth = [np.flatnonzero(x) for x in X.T]
right = sum(len(np.intersect1d(found, true)) for found, true in zip(batch.supports, truth, strict=True))
print(
    f"{len(batch)} pixels, {int(batch.success.sum())} successes; {right / sum(map(len, truth)):.1%} of their minerals "
    "found"
)
most = np.argsort(-batch.counts())[:4]
print(f"the four most frequent: {sorted(most.tolist())}, those of the image: {np.flatnonzero(X.any(axis=1)).tolist()}")
print(batch[0])

# %%
# The four most frequent minerals, as they are and as they were found.

figure, grid = plt.subplots(2, 4, figsize=(10, 5.2), layout="constrained")
for axes, image, name in zip(grid, (X[most], batch.x.toarray()[most]), ("as it is", "as found"), strict=True):
    for ax, values, mineral in zip(axes, image, most, strict=True):
        ax.imshow(values.reshape(SIDE, SIDE), vmin=0, vmax=1, cmap="viridis")
        ax.set_title(f"mineral {mineral}, {name}", fontsize="small")
        ax.set_axis_off()
plt.show()
