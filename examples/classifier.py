"""Tell classes apart by k features
================================

How well do one, two, three measurements tell benign tumours from malignant ones? The Wisconsin breast cancer data.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

X, y, names = ks.datasets.breast_cancer()
model = ks.SparseClassifierCV(range(1, 7), cv=5, one_standard_error=True).fit(X, y)
print(f"chosen k = {model.k_}: {', '.join(names[i] for i in np.flatnonzero(model.get_support()))}")
print(f"accuracy on the rows it was fitted to: {model.score(X, y):.3f}")

# %%
# The deviance of the rows left out, for every k.

ks.plotting.plot_cv(model)

# %%
# Coefficients in units that can be compared: the change of the log-odds of *benign* per standard deviation of a measurement.

ax = ks.plotting.plot_coefficients(names, model.coef_[0] * X.std(axis=0))
ax.set_xlabel("change of the log-odds per standard deviation")
plt.show()
