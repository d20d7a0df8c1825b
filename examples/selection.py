"""How sure is a selection?
========================

Cross-validation says how many features to take, not which of them would come again. Subsamples of the rows say that, and standard
errors of the refit how far off the coefficients may be.
"""

import matplotlib.pyplot as plt

import ksparse as ks

X, y, names = ks.datasets.diabetes()
chosen = ks.SparseRegressorCV(range(1, 10), cv=10, one_standard_error=True).fit(X, y)
print(f"cross-validation chooses k = {chosen.k_}")

# %%
# The coefficients of the models of every k: large ones that cancel each other come late.

ks.plotting.plot_coefficient_path(chosen.ks_, chosen.coef_path_, names)

# %%
# Sixty subsamples of half the patients, and what is selected in each. Above the dashed line a feature may be called stable.

sure = ks.selection_stability(ks.SparseRegressor(chosen.k_), X, y, n_subsamples=60)
print(f"in at least 90 % of the subsamples: {', '.join(names[int(name[1:])] for name in sure.stable())}")
ks.plotting.plot_stability(sure, names)

# %%
# The selected features fitted once more, with intervals. They are given the features: that the same rows chose these is not in them.

errors = ks.standard_errors(ks.SparseRegressor(chosen.k_).fit(X, y), X, y)
print(errors)
ks.plotting.plot_refit(errors)
plt.show()
