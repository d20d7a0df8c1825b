"""Sparse logistic regression
=============================

Logistic regression of the Wisconsin breast cancer data with one, two and three measurements.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

X, y, names = ks.datasets.breast_cancer()
model = ks.SparseClassifierCV(range(1, 7), cv=5, one_standard_error=True).fit(X, y)
print(f"selected k = {model.k_}: {', '.join(names[i] for i in np.flatnonzero(model.get_support()))}")
print(f"training accuracy: {model.score(X, y):.3f}")

# %%
# Cross-validated deviance for every k.

ks.plotting.plot_cv(model)

# %%
# Standardised coefficients: the change of the log-odds of *benign* per standard deviation of a measurement.

ax = ks.plotting.plot_coefficients(names, model.coef_[0] * X.std(axis=0))
ax.set_xlabel("change of the log-odds per standard deviation")
plt.show()
