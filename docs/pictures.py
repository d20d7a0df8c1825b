"""The picture of the start page and the README: python docs/pictures.py writes docs/start.png, and docs/start.txt, the same in letters.

A package index shows the README without the folder beside it: there the drawing in letters stands in for the picture.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

BAR = 30  # letters of the longest bar


def main() -> None:
    """Three tasks, one panel each."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    X, y, names = ks.datasets.diabetes(quadratic=True)
    model = ks.SparseRegressor(8, positive=[names.index(name) for name in ("bmi", "bp", "s5")]).fit(X, y)
    ks.plotting.plot_coefficients(names, model.coef_, ax=left)
    left.set_title("8 of 64 features, three signs known", fontsize="medium")

    assets = ks.datasets.factor_model(100, 750, seed=0)
    path = ks.k_path(ks.MeanVariance(assets.V, np.zeros(100), 1.0), range(1, 26), ks.Simplex())
    volatility = 100 * np.sqrt(250 * path.objective)
    ks.plotting.plot_frontier(path, volatility, label="least volatility a year, %", ax=middle)
    middle.set_title("portfolios of at most k of 100 assets", fontsize="medium")

    tumours, _, measured = ks.datasets.breast_cancer()
    ks.plotting.plot_loadings(ks.SparsePCA(3, k=4).fit(tumours).components_, measured, ax=right)
    right.set_title("components of 4 measurements", fontsize="medium")
    here = Path(__file__).parent
    plt.savefig(here / "start.png", dpi=110)

    largest = [j for j in np.argsort(-np.abs(model.coef_), kind="stable") if model.coef_[j]]
    chosen = {names[j]: float(model.coef_[j]) for j in largest}
    held = {f"k = {k:>2}": float(volatility[k - 1]) for k in (1, 2, 3, 5, 8, 13, 21)}
    blocks = (bars("8 of 64 features of the diabetes data, three signs known", chosen, ".0f"),
              bars("least volatility a year, in per cent, of at most k of 100 assets", held, ".2f"))  # fmt: skip
    (here / "start.txt").write_text("```\n" + "\n\n".join(blocks) + "\n```\n", encoding="utf-8")


def bars(title: str, values: dict[str, float], digits: str) -> str:
    """A bar of letters for each value, with its name and number."""
    wide, most = max(map(len, values)), max(map(abs, values.values()))
    rows = (f"{name:<{wide}}  {'█' * round(BAR * abs(value) / most):<{BAR}} {value:{digits}}" for name, value in values.items())
    return "\n".join([title, "", *rows])


if __name__ == "__main__":
    main()
