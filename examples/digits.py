"""Multinomial regression with shared features: digits
======================================================

Select twelve pixels of an 8 × 8 image that discriminate between all ten digits: a multinomial model whose classes
share their features.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ksparse as ks

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
for k in (4, 12):
    model = ks.SparseClassifier(k).fit(X, y)
    print(f"{k:>2} pixels: {100 * model.score(X_test, y_test):.0f} % of the test images are classified correctly")

# %%
# The selected pixels and their coefficients for each digit: red is positive, blue is negative.

weight = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
fig, axes = plt.subplots(2, 5, figsize=(9, 4))
most = np.abs(model.coef_ * weight).max()
for digit, ax in enumerate(axes.flat):
    ax.imshow(X[y == digit].mean(axis=0).reshape(8, 8), cmap="Greys", alpha=0.5)
    shown = np.where(model.get_support(), model.coef_[digit] * weight, np.nan).reshape(8, 8)
    ax.imshow(shown, cmap="coolwarm", vmin=-most, vmax=most)
    ax.set_title(str(digit))
    ax.set_axis_off()
fig.tight_layout()

# %%
# Several targets can share their features in the same way: here the left halves of images predict the right halves.

left, right = X.reshape(-1, 8, 8)[:, :, :4].reshape(len(X), -1), X.reshape(-1, 8, 8)[:, :, 4:].reshape(len(X), -1)
common = ks.SparseRegressor(6, multi_output="common").fit(left, right)
apart = ks.SparseRegressor(6).fit(left, right)
print(
    f"32 targets by 6 pixels for all: R² {common.score(left, right):.2f}; by 6 of its own each: "
    f"{apart.score(left, right):.2f}"
)
print(f"pixels used: {common.get_support().sum()} against {apart.get_support().sum()}")
plt.show()
