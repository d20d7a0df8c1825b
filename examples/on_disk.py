"""Data on disk
===============

A table in several files, read block by block: two blocks are in memory at a time, and ``result.passes`` counts the
passes over the files. The solution is the same as for data in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(0)
parts = [rng.standard_normal((4000, 300)).astype(np.float32) for _ in range(4)]
x_true = np.zeros(300)
x_true[rng.choice(300, 12, replace=False)] = rng.uniform(0.2, 1.0, 12)
b = np.concatenate(parts) @ x_true + rng.standard_normal(16_000)
with tempfile.TemporaryDirectory() as folder:
    for i, part in enumerate(parts):
        np.save(Path(folder) / f"part{i}.npy", part)
    A = ks.blocks(folder)
    result = ks.minimize(ks.LeastSquares(A, b), 12)
    print(f"{A.shape[0]} rows in {len(parts)} files, read {result.passes} times; {result.message}")
whole = ks.minimize(ks.LeastSquares(np.concatenate(parts), b), 12)
print(f"same support as in memory: {np.array_equal(result.support, whole.support)}")

# %%
# True and estimated coefficients.

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.plot(x_true[x_true > 0], result.x[x_true > 0], "o", color=ks.plotting.COLOURS[0])
ax.axline((0, 0), slope=1, color="0.5", linewidth=1)
ax.set(xlabel="true coefficient", ylabel="estimated coefficient")
plt.show()
