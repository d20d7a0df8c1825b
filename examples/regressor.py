"""SparseRegressor and SparseRegressorCV on the diabetes data: few features, some with a known sign, and how many are worth having."""

from pathlib import Path

from matplotlib.figure import Figure

from ksparse.datasets import diabetes
from ksparse.estimators import SparseRegressor, SparseRegressorCV
from ksparse.plotting import COLOURS, plot_coefficients

OUT = Path("regressor.png")


def main() -> None:
    """Fit, choose k, draw both."""
    X, y, names = diabetes(quadratic=True)  # 10 measurements, their squares and products: 64 features
    known = [names.index(name) for name in ("bmi", "bp", "s5")]  # more of these does not help the patient
    model = SparseRegressor(k=8, positive=known).fit(X, y)
    print(f"8 of 64 features: R² {model.score(X, y):.3f}; {model.result_.message}")
    for name, value in zip(names, model.coef_, strict=True):
        if value:
            print(f"  {name:>10} {value:10.1f}")

    chosen = SparseRegressorCV(range(1, 16), cv=10, one_standard_error=True, n_jobs=2).fit(X, y)
    print(f"cross-validation with the one-standard-error rule chooses k = {chosen.k_}")

    figure = Figure(figsize=(11, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    plot_coefficients(names, model.coef_, ax=left)
    left.set_title("The best 8 of 64 features, three signs known", fontsize="medium")
    error, spread = chosen.cv_errors_.mean(axis=0), chosen.cv_errors_.std(axis=0, ddof=1) / 10**0.5
    right.errorbar(chosen.ks_, error, spread, color=COLOURS[0], marker="o", markersize=4, capsize=3)
    right.axvline(chosen.k_, color=COLOURS[1], linestyle="--", label=f"chosen, k = {chosen.k_}")
    right.set(xlabel="k, features allowed", ylabel="mean squared error, rows left out")
    right.grid(alpha=0.3)
    right.legend(frameon=False)
    figure.savefig(OUT, dpi=150)
    print(f"Picture: {OUT}")


if __name__ == "__main__":
    main()
