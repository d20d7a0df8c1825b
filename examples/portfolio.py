"""SparsePortfolio and SparseMeanRisk on the S&P prices that come with skfolio: what a cap on the number of names costs."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from skfolio.datasets import load_sp500_dataset
from skfolio.model_selection import WalkForward, cross_val_predict
from skfolio.preprocessing import prices_to_returns

import ksparse as ks
from ksparse.estimators import SparsePortfolio
from ksparse.plotting import plot_frontier, plot_weights
from ksparse.skfolio import SparseMeanRisk

OUT = Path("portfolio.png")


def main() -> None:
    """One portfolio, the risk for every k, a walk forward through the years."""
    returns = prices_to_returns(load_sp500_dataset()).iloc[-1500:]
    model = SparsePortfolio(k=6, risk_aversion=5.0, max_weight=0.4, min_weight=0.05).fit(returns)
    print(f"6 of 20 names, at most 40 % and at least 5 % each: {model.result_.message}")

    loss = ks.MeanVariance(np.cov(returns.to_numpy().T), np.zeros(returns.shape[1]), 1.0)
    path = ks.k_path(loss, range(1, 16), ks.Simplex())
    walk = cross_val_predict(SparseMeanRisk(k=5, min_weight=0.05), returns, cv=WalkForward(train_size=500, test_size=125))
    print(f"walking forward, {len(walk)} rebalancings with 5 names: volatility {walk.annualized_standard_deviation:.3f} a year, ", end="")
    print(f"return {walk.annualized_mean:.3f}")

    figure = Figure(figsize=(11, 4.2), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    plot_weights(list(returns.columns), model.weights_, ax=left)
    left.set_title("At most 6 of 20 names", fontsize="medium")
    plot_frontier(path, 100 * np.sqrt(252 * path.objective), label="least volatility a year, %", ax=right)
    right.set_title("What a cap on the number of names costs", fontsize="medium")
    figure.savefig(OUT, dpi=150)
    print(f"Picture: {OUT}")


if __name__ == "__main__":
    main()
