"""Sparse linear regression
===========================

At most eight of 64 features of the diabetes data with three sign constraints, and the choice of k by
cross-validation.
"""

import matplotlib.pyplot as plt

import ksparse as ks

X, y, names = ks.datasets.diabetes(quadratic=True)  # 10 measurements, their squares and products: 64 features
known = [names.index(name) for name in ("bmi", "bp", "s5")]  # more of these does not help the patient
model = ks.SparseRegressor(k=8, positive=known).fit(X, y)
print(f"8 of 64 features: R² {model.score(X, y):.3f}; {model.result_.message}")
for name, value in zip(names, model.coef_, strict=True):
    if value:
        print(f"  {name:>10} {value:10.1f}")

# %%
# The coefficients, the largest first. At most eight are nonzero, and the three sign constraints hold exactly.

ks.plotting.plot_coefficients(names, model.coef_)

# %%
# Cross-validation over k along one warm-started path per fold. The smallest k within one standard error of the best is
# a usual choice if few features are wanted.

chosen = ks.SparseRegressorCV(range(1, 16), cv=10, one_standard_error=True).fit(X, y)
print(f"cross-validation with the one-standard-error rule chooses k = {chosen.k_}")
ks.plotting.plot_cv(chosen)
plt.show()
