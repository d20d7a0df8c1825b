"""Stability selection and standard errors
==========================================

Cross-validation chooses the number of features, but does not show whether the same features would be selected again.
Subsamples of the rows do, and a refit gives standard errors of the coefficients.
"""

import matplotlib.pyplot as plt

import ksparse as ks

X, y, names = ks.datasets.diabetes()
chosen = ks.SparseRegressorCV(range(1, 10), cv=10, one_standard_error=True).fit(X, y)
print(f"cross-validation selects k = {chosen.k_}")

# %%
# Coefficients of the models for every k: large coefficients that cancel each other appear at large k.

ks.plotting.plot_coefficient_path(chosen.ks_, chosen.coef_path_, names)

# %%
# Selection frequencies on sixty subsamples of half the patients. Features above the dashed line are considered stable.

sure = ks.selection_stability(ks.SparseRegressor(chosen.k_), X, y, n_subsamples=60)
print(f"in at least 90 % of the subsamples: {', '.join(names[int(name[1:])] for name in sure.stable())}")
ks.plotting.plot_stability(sure, names)

# %%
# Refitted coefficients with confidence intervals, conditional on the selected features (the selection is ignored).

errors = ks.standard_errors(ks.SparseRegressor(chosen.k_).fit(X, y), X, y)
print(errors)
ks.plotting.plot_refit(errors)
plt.show()
