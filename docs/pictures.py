"""Write the pictures of the pages, docs/start.png and docs/guide/portfolio.png: python docs/pictures.py.

Write also docs/start.txt, the first picture as text: a package index shows the README without images.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

HERE = Path(__file__).parent
SECTORS = ("tech", "banks", "energy", "health", "utilities")
BAR = 30  # letters of the longest bar


def start() -> None:
    """Draw three problems, one panel each."""
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
    plt.savefig(HERE / "start.png", dpi=110)

    largest = [j for j in np.argsort(-np.abs(model.coef_), kind="stable") if model.coef_[j]]
    chosen = {names[j]: float(model.coef_[j]) for j in largest}
    held = {f"k = {k:>2}": float(volatility[k - 1]) for k in (1, 2, 3, 5, 8, 13, 21)}
    blocks = (bars("8 of 64 features of the diabetes data, three signs known", chosen, ".0f"),
              bars("least volatility a year, in per cent, of at most k of 100 assets", held, ".2f"))  # fmt: skip
    (HERE / "start.txt").write_text("```\n" + "\n\n".join(blocks) + "\n```\n", encoding="utf-8")


def bars(title: str, values: dict[str, float], digits: str) -> str:
    """Return a text bar for each value, with its name and number."""
    wide, most = max(map(len, values)), max(map(abs, values.values()))
    rows = (
        f"{name:<{wide}}  {'█' * round(BAR * abs(value) / most):<{BAR}} {value:{digits}}"
        for name, value in values.items()
    )
    return "\n".join([title, "", *rows])


def portfolio() -> None:
    """Draw the portfolio of the guide: weights by sector, frontier, backtest."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    returns = ks.datasets.factor_model(80, 900, seed=5).returns
    assert returns is not None
    labels = [SECTORS[j % 5] for j in range(80)]
    counts = dict.fromkeys(SECTORS, 3) | {"utilities": (1, 2)}
    mandate = {
        "max_weight": 0.25,
        "min_weight": 0.02,
        "groups": labels,
        "group_caps": 0.35,
        "group_cardinalities": counts,
    }
    mandate |= {"linear_constraints": ["x3 + x7 <= 0.1", "energy <= tech + banks"]}
    x = ks.SparsePortfolio(10, risk_aversion=5.0, **mandate).fit(returns[:500]).weights_
    for place in range(5):
        below = 0.0
        for weight in sorted(x[place::5][x[place::5] != 0], reverse=True):
            left.bar(
                place,
                100 * weight,
                bottom=below,
                color=ks.plotting.COLOURS[place % len(ks.plotting.COLOURS)],
                edgecolor="white",
            )
            below += 100 * weight
    left.axhline(35, color="0.5", linestyle="--")
    left.set_xticks(range(5), SECTORS)
    left.set_ylabel("% of the portfolio, a block per name")
    left.set_title("at most 35 % and 3 names a sector", fontsize="medium")

    for k in (10, 5):
        points = ks.SparsePortfolio(k, **mandate).frontier(returns[:500], 20)
        single = returns[:500] if k == 10 else None
        ks.plotting.plot_efficient_frontier(points, periods=250, assets=single, label=f"{k} names", ax=middle)

    cost = np.linspace(0.001, 0.003, 80)
    for place, (name, rules) in enumerate(
        {"costs in the search": {"turnover_cost": cost, "max_turnover": 0.5}, "paid afterwards": {}}.items()
    ):
        walk = ks.SparsePortfolio(10, risk_aversion=5.0, **mandate, **rules).walk_forward(returns, window=500, step=50)
        net, trades = walk.returns.copy(), np.abs(np.diff(walk.weights, axis=0))
        if not rules:
            net[walk.starts[1:] - walk.starts[0]] -= trades @ cost
        label = f"{name}: turnover {walk.turnovers[1:].mean():.2f}"
        right.plot(walk.rows, np.cumprod(1 + net), color=ks.plotting.COLOURS[place], label=label)
    right.set(xlabel="day", ylabel="wealth after costs")
    right.legend(frameon=False)
    right.set_title("walking forward", fontsize="medium")
    plt.savefig(HERE / "guide" / "portfolio.png", dpi=110)


if __name__ == "__main__":
    start()
    portfolio()
