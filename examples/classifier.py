"""SparseClassifier on the Wisconsin breast cancer data: how well do one, two, three measurements tell tumours apart?"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import cross_val_score

from ksparse.datasets import breast_cancer
from ksparse.estimators import SparseClassifier, SparseClassifierCV
from ksparse.plotting import COLOURS, plot_coefficients

OUT = Path("classifier.png")


def main() -> None:
    """Accuracy on rows left out for k = 1…5, the choice of k, the chosen model."""
    X, y, names = breast_cancer()
    ks = range(1, 6)
    accuracy = np.array([cross_val_score(SparseClassifier(k), X, y, cv=5) for k in ks])
    for k, row in zip(ks, accuracy, strict=True):
        print(f"k = {k}: accuracy {row.mean():.3f} on the rows left out")
    model = SparseClassifierCV(ks, cv=5, one_standard_error=True, n_jobs=2).fit(X, y)
    print(f"chosen k = {model.k_}: {', '.join(names[i] for i in np.flatnonzero(model.get_support()))}")

    figure = Figure(figsize=(11, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    left.errorbar(ks, accuracy.mean(axis=1), accuracy.std(axis=1) / 5**0.5, color=COLOURS[0], marker="o", capsize=3)
    left.set(xlabel="k, measurements allowed", ylabel="accuracy, rows left out")
    left.grid(alpha=0.3)
    plot_coefficients(names, model.coef_[0] * X.std(axis=0), ax=right)
    right.set(xlabel="change of the log-odds of benign per standard deviation")
    figure.savefig(OUT, dpi=150)
    print(f"Picture: {OUT}")


if __name__ == "__main__":
    main()
