"""Ten digits by twelve pixels
===========================

Which pixels of an 8 × 8 image tell ten digits apart? One list for all digits: a multinomial model whose classes share their features.
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
    print(f"{k:>2} pixels: {100 * model.score(X_test, y_test):.0f} % of the other images are read right")

# %%
# The pixels that were chosen, and how they speak for each digit: red for, blue against.

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
# Several numbers by the same features go the same way: here the images' left halves predict what the right halves look like.

left, right = X.reshape(-1, 8, 8)[:, :, :4].reshape(len(X), -1), X.reshape(-1, 8, 8)[:, :, 4:].reshape(len(X), -1)
common = ks.SparseRegressor(6, multi_output="common").fit(left, right)
apart = ks.SparseRegressor(6).fit(left, right)
print(
    f"32 targets by 6 pixels for all: R² {common.score(left, right):.2f}; by 6 of its own each: {apart.score(left, right):.2f}"
)
print(f"pixels that are looked at: {common.get_support().sum()} against {apart.get_support().sum()}")
plt.show()
