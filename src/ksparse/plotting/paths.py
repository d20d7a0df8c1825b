"""Plots over k: paths, frontiers, and the curve by which k is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.plotting.style import COLOURS, DASHES, MARKERS, axes, finish, words
from ksparse.solve.path import KPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_path(path: KPath, names: Sequence[str] | None = None, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """Plot the entries of the solutions against k, one line per variable that is selected at some k.

    Parameters
    ----------
    path : KPath
        Result of `ksparse.k_path`.
    names : sequence of str, default=None
        Names of the variables; None for x0, x1, ...
    limit : int, default=12
        Number of lines with a colour and a name, the largest; all others are grey.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> path = ks.k_path(ks.LeastSquares(rng.standard_normal((30, 8)), rng.standard_normal(30)), range(1, 5))
    >>> ks.plotting.plot_path(path).get_ylabel()
    'entry'
    """
    return _lines(path.ks, path.x, names, limit, "entry", ax)


def plot_coefficient_path(
    ks: Any, coef_path: Any, names: Sequence[str] | None = None, *, limit: int = 12, ax: Axes | None = None
) -> Axes:
    """Plot the coefficients of models against k, one line per feature that is selected at some k.

    Parameters
    ----------
    ks : array-like of shape (n_ks,)
        Numbers of features, such as `ks_` of an estimator that chose k.
    coef_path : array-like of shape (n_ks, n_features)
        One model per row, such as `coef_path_`; one class at a time.
    names : sequence of str, default=None
        Names of the features; None for x0, x1, ...
    limit : int, default=12
        Number of lines with a colour and a name, the largest; all others are grey.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If `coef_path` is not a table with one row per k.

    See Also
    --------
    plot_path : Plot the result of `ksparse.k_path`.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> model = ks.SparseRegressorCV(range(1, 7), criterion="bic").fit(X, y)
    >>> ks.plotting.plot_coefficient_path(model.ks_, model.coef_path_, names).get_ylabel()
    'coefficient'
    """
    coef, sizes = np.asarray(coef_path, dtype=float), np.asarray(ks)
    if coef.ndim != 2 or len(coef) != len(sizes):
        raise ValueError(f"coef_path needs one row per k, {len(sizes)}, got shape {coef.shape}: one class at a time")
    return _lines(sizes, coef, names, limit, "coefficient", ax)


def plot_frontier(path: KPath, values: Any = None, *, label: str = "objective", ax: Axes | None = None) -> Axes:
    """Plot the objective, or other values such as risk or return, against k.

    Parameters
    ----------
    path : KPath
        Result of `ksparse.k_path`.
    values : array-like, default=None
        One number per solution; None for the objective.
    label : str, default="objective"
        Label of the vertical axis.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the number of values is not the number of solutions.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> path = ks.k_path(ks.LeastSquares(rng.standard_normal((30, 8)), rng.standard_normal(30)), range(1, 5))
    >>> len(ks.plotting.plot_frontier(path).get_lines()[0].get_xdata())
    4
    """
    ax = axes(ax)
    heights = path.objective if values is None else np.asarray(values, dtype=float)
    if len(heights) != len(path):
        raise ValueError(f"values must hold one number per k, {len(path)}, got {len(heights)}")
    ax.plot(path.ks, heights, color=COLOURS[0], marker="o", markersize=4)
    ax.set(xlabel="k (maximum number of nonzeros)", ylabel=label)
    return finish(ax, legend=False)


def plot_efficient_frontier(
    frontier: Any, *, periods: int = 1, assets: Any = None, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot mean return against standard deviation of the portfolios of a frontier, and of single assets if given.

    Parameters
    ----------
    frontier : Frontier
        Result of `SparsePortfolio.frontier`.
    periods : int, default=1
        Periods per year, by which means and variances are multiplied: 252 for daily returns.
    assets : array-like of shape (n_periods, n_assets) or None, default=None
        Returns of single assets, drawn as points.
    label : str or None, default=None
        Label of the line, if several are drawn on the same axes.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import ksparse as ks
    >>> returns = ks.datasets.factor_model(30, 300, seed=0).returns
    >>> frontier = ks.SparsePortfolio(k=5).frontier(returns, 5)
    >>> ax = ks.plotting.plot_efficient_frontier(frontier, periods=250, assets=returns)
    >>> len(ax.get_lines()[-1].get_xdata())
    5
    """
    ax = axes(ax)
    if assets is not None:
        table = np.asarray(assets, dtype=float)
        single = 100 * np.sqrt(periods) * table.std(axis=0, ddof=1), 100 * periods * table.mean(axis=0)
        ax.plot(*single, linestyle="none", marker=".", color="0.6", label="single assets" if label else None)
    drawn = sum(line.get_linestyle() != "None" for line in ax.get_lines())
    colour = COLOURS[drawn % len(COLOURS)]
    points = 100 * np.sqrt(periods) * frontier.deviations, 100 * periods * frontier.mean_returns
    ax.plot(*points, color=colour, marker="o", markersize=3, label=label)
    span = "% per year" if periods > 1 else "% per period"
    ax.set(xlabel=f"standard deviation ({span})", ylabel=f"mean return ({span})")
    return finish(ax, legend=label is not None)


def plot_cv(model: Any, *, ax: Axes | None = None) -> Axes:
    """Plot the curve by which k was chosen: cross-validated loss with one standard error, or the information criterion.

    A second line marks the smallest k within one standard error of the best, which `one_standard_error=True` chooses.

    Parameters
    ----------
    model : SparseRegressorCV or SparseClassifierCV
        A fitted estimator.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the model is not fitted or does not choose k.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> ax = ks.plotting.plot_cv(ks.SparseRegressorCV(range(1, 7), cv=5).fit(X, y))
    >>> ax.get_xlabel()
    'k (maximum number of features)'
    """
    if not hasattr(model, "k_"):
        raise ValueError(f"model must be a fitted estimator that chooses k, got {type(model).__name__}")
    ax, errors = axes(ax), getattr(model, "cv_errors_", None)
    if errors is None:
        ax.plot(model.ks_, model.criterion_, color=COLOURS[0], marker="o", markersize=4)
        ax.set(ylabel=model.criterion.upper())
    else:
        mean = errors.mean(axis=0)
        spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.zeros_like(mean)
        ax.errorbar(model.ks_, mean, spread, color=COLOURS[0], marker="o", markersize=4, capsize=3)
        best = int(np.argmin(mean))
        within = mean[best] + spread[best]
        ax.axhline(within, color="0.5", linewidth=1, linestyle=":", label="best + 1 standard error")
        least = int(model.ks_[np.argmax(mean <= within)])
        if least != model.k_:
            ax.axvline(least, color=COLOURS[2], linestyle="-.", label=f"within 1 standard error: k = {least}")
        ax.set(ylabel="cross-validated loss")
    ax.axvline(model.k_, color=COLOURS[1], linestyle="--", label=f"selected k = {model.k_}")
    ax.set(xlabel="k (maximum number of features)")
    return finish(ax, legend=True)


def _lines(ks: Any, x: Any, names: Sequence[str] | None, limit: int, label: str, ax: Axes | None) -> Axes:
    """Draw a line per column with a nonzero, and name the largest."""
    ax = axes(ax)
    members = [int(j) for j in np.argsort(-np.abs(x).max(axis=0), kind="stable") if x[:, j].any()]
    for position, j in enumerate(members):
        named = position < limit
        colour, marker, dash = COLOURS[position % 7], MARKERS[position % 7], DASHES[(position // 7) % 7]
        look = {"color": colour, "marker": marker, "linestyle": dash} if named else {"color": "0.75", "linewidth": 0.8}
        word = (words(names[j]) if names is not None else f"x{j}") if named else None
        ax.plot(ks, x[:, j], label=word, markersize=4, **look)
    hidden = len(members) - limit
    more = f"; {hidden} further variables in grey" if hidden > 0 else ""
    ax.set(xlabel=f"k (maximum number of nonzeros{more})", ylabel=label)
    return finish(ax, legend=bool(members))
