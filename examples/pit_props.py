"""Sparse PCA of the pit props data
===================================

Sparse principal components of a standard test (Jeffers 1967): for every k the best direction with at most k loadings,
compared with the accelerated method of the paper. Each is proved optimal.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

R, names = ks.datasets.pit_props()
loss, ball = ks.PrincipalComponent(R), ks.L2Ball()
results = [ks.minimize(loss, k, ball) for k in range(1, 14)]
papers = [ks.minimize(loss, k, ball, method="apdca") for k in range(1, 14)]
print(f"{'k':>2} {'l2-APDCA':>9} {'auto':>7}  measurements")
for paper, result in zip(papers, results, strict=True):
    print(f"{result.k:>2} {-paper.fun:9.4f} {-result.fun:7.4f}  {', '.join(names[i] for i in result.support)}")

# %%
# Six of thirteen measurements explain nearly as much variance as all.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.bar(range(1, 14), [-result.fun for result in results], color=ks.plotting.COLOURS[0])
ax.axhline(np.linalg.eigvalsh(R)[-1], color=ks.plotting.COLOURS[1], linestyle="--", label="all 13 measurements")
ax.set(
    xlabel="k (maximum number of measurements)", ylabel="variance of the component", ylim=(0, 5), xticks=range(1, 14)
)
ax.legend(frameon=False, loc="upper left")
plt.show()
