"""Plots of results and runs with matplotlib; every function draws on `ax` or on a new figure and returns the axes."""

from ksparse.plotting.answers import (
    plot_coefficients,
    plot_frequencies,
    plot_loadings,
    plot_refit,
    plot_stability,
    plot_weights,
)
from ksparse.plotting.paths import plot_coefficient_path, plot_cv, plot_efficient_frontier, plot_frontier, plot_path
from ksparse.plotting.runs import plot_convergence, plot_gap, plot_objective_time, plot_starts
from ksparse.plotting.style import COLOURS, style

__all__ = [
    "COLOURS", "plot_coefficient_path", "plot_coefficients", "plot_convergence", "plot_cv", "plot_efficient_frontier",
    "plot_frequencies", "plot_frontier", "plot_gap", "plot_loadings", "plot_objective_time", "plot_path", "plot_refit",
    "plot_stability", "plot_starts", "plot_weights", "style",
]  # fmt: skip
