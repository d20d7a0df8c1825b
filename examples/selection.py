"""How sure is a selection? Subsamples of the diabetes data, standard errors of the refit, and the coefficients of every k."""

from pathlib import Path

from matplotlib.figure import Figure

import ksparse as ks
from ksparse.datasets import diabetes
from ksparse.plotting import plot_coefficient_path, plot_refit, plot_stability

OUT = Path("selection.png")


def main() -> None:
    """Choose k, see which features come again, and how far off their coefficients may be."""
    X, y, names = diabetes()
    chosen = ks.SparseRegressorCV(range(1, 10), cv=10, one_standard_error=True).fit(X, y)
    print(f"cross-validation chooses k = {chosen.k_}")
    sure = ks.selection_stability(ks.SparseRegressor(chosen.k_), X, y, n_subsamples=60, n_jobs=2)
    print(f"in at least 90 % of the subsamples: {', '.join(names[int(name[1:])] for name in sure.stable())}")
    model = ks.SparseRegressor(chosen.k_).fit(X, y)
    errors = ks.standard_errors(model, X, y)
    print(errors)

    figure = Figure(figsize=(12, 4.2), layout="constrained", facecolor="white")
    left, middle, right = figure.subplots(1, 3)
    plot_coefficient_path(chosen.ks_, chosen.coef_path_, names, ax=left)
    plot_stability(sure, ax=middle)
    plot_refit(errors, ax=right)
    figure.savefig(OUT, dpi=150)
    print(f"Picture: {OUT}")


if __name__ == "__main__":
    main()
