"""Sparse PCA of handwritten digits
===================================

Four sparse components of handwritten digits with 12 pixels each, compared with the usual components of all pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import ksparse as ks

X = load_digits().data
sparse = ks.SparsePCA(4, k=12, scale=False).fit(X)
dense = ks.SparsePCA(4, k=64, scale=False).fit(X)
print(f"variance explained by four components: all pixels {dense.explained_variance_ratio_.sum():.3f}, ", end="")
print(f"12 pixels each {sparse.explained_variance_ratio_.sum():.3f}")

# %%
# Top: components of all pixels. Bottom: components of twelve pixels.

fig, axes = plt.subplots(2, 4, figsize=(9, 5), layout="constrained")
for row, (name, model) in zip(axes, (("all pixels", dense), ("12 pixels", sparse)), strict=True):
    for ax, component, share in zip(row, model.components_, model.explained_variance_ratio_, strict=True):
        reach = np.abs(component).max()
        ax.imshow(component.reshape(8, 8), cmap="PuOr", vmin=-reach, vmax=reach)
        ax.set_title(f"{name}: {100 * share:.1f} %", fontsize="medium")
        ax.set_axis_off()

# %%
# The loadings as a table.

ks.plotting.plot_loadings(sparse.components_, [f"pixel {i // 8},{i % 8}" for i in range(64)])
plt.show()
