"""Regression with factors and interactions
===========================================

Prices of houses by city, heating, style and four numbers. The dummy columns of a factor are selected together
(`groups`), and the slope of the area in each city only with city and area (`requires`). The path over k counts
factors, numbers and interactions, not columns.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ksparse as ks

rng = np.random.default_rng(0)
n = 300
houses = pd.DataFrame(
    {
        "city": rng.choice(["Oslo", "Paris", "Rome", "New York"], n),
        "heating": rng.choice(["gas", "oil", "pump"], n),
        "style": rng.choice(list("ABCDEF"), n),
        "area": rng.normal(100, 25, n),
        "age": rng.gamma(2, 15, n),
        "rooms": rng.integers(1, 7, n),
        "noise": rng.normal(50, 10, n),
    }
)
slope = houses["city"].map({"Oslo": 2.0, "Paris": 5.0, "Rome": 1.5, "New York": 3.0})
price = (
    houses["city"].map({"Oslo": 60, "Paris": 150, "Rome": 20, "New York": 100}) + slope * houses["area"] - houses["age"]
)
price += rng.normal(0, 30, n)

# %%
# Dummy columns, and their products with the area.

table = pd.get_dummies(houses, columns=["city", "heating", "style"], drop_first=True, dtype=float)
for factor in ("city", "heating"):
    for dummy in [name for name in table if name.startswith(f"{factor}_")]:
        table[f"{factor}:area_{dummy.removeprefix(f'{factor}_')}"] = table[dummy] * table["area"]
factors = ks.factors("city", "heating", "style", "city:area", "heating:area")
rules = {"groups": factors, "requires": {"city:area": ["city", "area"], "heating:area": ["heating", "area"]}}

# %%
# All k at once: the selected groups, and the error on test rows.

chosen = ks.SparseRegressorCV(range(1, 9), cv=5, one_standard_error=True, **rules).fit(table, price)
labels = np.array(factors(table.columns))
names = list(dict.fromkeys(labels))
for k, coef in zip(chosen.ks_, chosen.coef_path_, strict=True):
    print(f"k = {k}: {', '.join(name for name in names if coef[labels == name].any())}")
model = ks.SparseRegressor(chosen.k_, gap=1e-3, **rules).fit(table, price)
print(f"selected k: {chosen.k_}; {model.result_.message}")

# %%
# The fitted lines of the selected model, one for each city.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
used = np.array([[coef[labels == name].any() for coef in chosen.coef_path_] for name in names])
left.imshow(used, aspect="auto", cmap="Blues", vmax=1.5)
left.set(
    xticks=range(len(chosen.ks_)),
    xticklabels=chosen.ks_,
    yticks=range(len(names)),
    yticklabels=names,
    xlabel="k",
    title="Selected groups by k",
)
typical = table.assign(age=table["age"].mean())
for place, city in enumerate(sorted(houses["city"].unique())):
    rows = houses["city"] == city
    order = houses["area"][rows].sort_values().index
    right.plot(houses["area"][rows], price[rows], ".", alpha=0.4, color=f"C{place}")
    right.plot(houses["area"][order], model.predict(typical.loc[order]), color=f"C{place}", label=city)
right.set(xlabel="area", ylabel="price", title="Price against area by city, at the mean age")
right.legend()
figure.tight_layout()
plt.show()
