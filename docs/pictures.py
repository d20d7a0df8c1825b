"""The picture of the start page and the README: python docs/pictures.py writes docs/start.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks


def main() -> None:
    """Three tasks, one panel each."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    X, y, names = ks.datasets.diabetes(quadratic=True)
    model = ks.SparseRegressor(8, positive=[names.index(name) for name in ("bmi", "bp", "s5")]).fit(X, y)
    ks.plotting.plot_coefficients(names, model.coef_, ax=left)
    left.set_title("8 of 64 features, three signs known", fontsize="medium")

    assets = ks.datasets.factor_model(100, 750, seed=0)
    path = ks.k_path(ks.MeanVariance(assets.V, np.zeros(100), 1.0), range(1, 26), ks.Simplex())
    ks.plotting.plot_frontier(path, 100 * np.sqrt(250 * path.objective), label="least volatility a year, %", ax=middle)
    middle.set_title("portfolios of at most k of 100 assets", fontsize="medium")

    tumours, _, measured = ks.datasets.breast_cancer()
    ks.plotting.plot_loadings(ks.SparsePCA(3, k=4).fit(tumours).components_, measured, ax=right)
    right.set_title("components of 4 measurements", fontsize="medium")
    plt.savefig(Path(__file__).parent / "start.png", dpi=110)


if __name__ == "__main__":
    main()
