"""Interactions with strong hierarchy
=====================================

Twelve measurements and their 66 products; three of each are relevant for the response. With `requires`, a product is
only selected together with both of its factors; `k_path` computes the best such model for every size, and shows the
cost of the constraint.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(4)
X = rng.standard_normal((150, 12))
pairs = [(i, j) for j in range(12) for i in range(j)]
A = np.hstack([X, np.column_stack([X[:, i] * X[:, j] for i, j in pairs])])
names = [f"x{i}" for i in range(12)] + [f"x{i}·x{j}" for i, j in pairs]
y = X[:, 0] - X[:, 3] + 0.5 * X[:, 7] + 0.8 * X[:, 0] * X[:, 3] + 0.6 * X[:, 3] * X[:, 7] - 0.4 * X[:, 1] * X[:, 2]
y += 0.5 * rng.standard_normal(150)
requires = {12 + place: pair for place, pair in enumerate(pairs)}

sizes = range(1, 11)
free = ks.k_path(ks.LeastSquares(A, y), sizes)
strong = ks.k_path(ks.LeastSquares(A, y), sizes, requires=requires)
for k in (5, 8):
    print(f"k = {k}: {', '.join(names[i] for i in free[k].support)}")
    print(f"  with main effects: {', '.join(names[i] for i in strong[k].support)}")

# %%
# The product of x1 and x2 is relevant without its main effects: with the constraint it needs three features, not one.

figure, axes = plt.subplots()
axes.plot(free.ks, free.objective, "o-", label="any product")
axes.plot(strong.ks, strong.objective, "s-", label="products with their factors")
axes.set(xlabel="k", ylabel="½‖Ax − y‖²", title="Cost of the hierarchy")
axes.legend()
plt.show()
