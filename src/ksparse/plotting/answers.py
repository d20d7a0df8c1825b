"""Plots of results: coefficients, weights, loadings, and frequencies of selected variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.plotting.style import COLOURS, axes, finish, words
from ksparse.solve.near_optimal import NearOptimal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ksparse.linear.stability import Stability
    from ksparse.linear.standard_errors import Refit


def plot_coefficients(names: Sequence[str], values: Any, *, limit: int = 30, ax: Axes | None = None) -> Axes:
    """Plot the nonzero coefficients as bars, the largest first.

    Parameters
    ----------
    names : sequence of str
        Names of the variables.
    values : array-like
        One coefficient per name.
    limit : int, default=30
        Maximum number of bars; the label counts the others.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If names and values differ in length.

    Examples
    --------
    >>> import ksparse as ks
    >>> ax = ks.plotting.plot_coefficients(["age", "bmi", "bp"], [0.0, -2.0, 1.0])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['bmi', 'bp']
    """
    return _bars(names, values, limit, "coefficient", ax)


def plot_weights(names: Sequence[str], weights: Any, *, limit: int = 30, ax: Axes | None = None) -> Axes:
    """Plot the weights of a portfolio in percent as bars, the largest first.

    Parameters
    ----------
    names : sequence of str
        Names of the assets.
    weights : array-like
        One weight per name, as fractions of 1.
    limit : int, default=30
        Maximum number of bars; the label counts the others.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If names and values differ in length.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.plotting.plot_weights(["A", "B", "C"], [0.7, 0.0, 0.3]).get_xlabel()
    'weight (%)'
    """
    return _bars(names, 100.0 * np.asarray(weights, dtype=float), limit, "weight (%)", ax)


def plot_frequencies(
    found: NearOptimal, names: Sequence[str] | None = None, *, limit: int = 30, ax: Axes | None = None
) -> Axes:
    """Plot the percentage of near-optimal supports that contain each variable, the most frequent first.

    Parameters
    ----------
    found : NearOptimal
        Result of `ksparse.near_optimal`.
    names : sequence of str, default=None
        Names of the variables; None for x0, x1, ...
    limit : int, default=30
        Maximum number of bars; the label counts the others.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If names and values differ in length.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> loss = ks.LeastSquares(rng.standard_normal((60, 12)), rng.standard_normal(60))
    >>> found = ks.near_optimal(loss, 3, within=0.02)
    >>> ks.plotting.plot_frequencies(found).get_xlabel().endswith("supports (%)")
    True
    """
    shares = 100.0 * found.frequencies
    return _bars(_names(names, shares.size), shares, limit, f"inclusion frequency in {len(found)} supports (%)", ax)


def plot_stability(
    found: Stability | Any, names: Sequence[str] | None = None, *, limit: int = 30, ax: Axes | None = None
) -> Axes:
    """Plot the percentage of fits that select each variable, the most frequent first.

    Parameters
    ----------
    found : Stability or array-like of shape (n_fits, n_variables)
        Result of `ksparse.selection_stability`, plotted with a line at 90 %; or one row per fit, whose nonzeros are
        selected, such as fits to resampled rows, folds or seeds.
    names : sequence of str, default=None
        Names of the variables; None for those of the fit, or x0, x1, ...
    limit : int, default=30
        Maximum number of bars; the label counts the others.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If `found` is neither, or names and columns differ in number.

    Examples
    --------
    >>> import ksparse as ks
    >>> ax = ks.plotting.plot_stability([[1.0, 0.0, 2.0], [0.9, 0.1, 0.0]], ["a", "b", "c"])
    >>> [float(bar.get_width()) for bar in ax.patches]
    [100.0, 50.0, 50.0]

    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.selection_stability(ks.SparseRegressor(k=3), X, y, n_subsamples=20)
    >>> ks.plotting.plot_stability(found, names).get_xlabel()
    'inclusion frequency in 20 subsamples (%)'
    """
    sampled = hasattr(found, "expected_false")
    table = np.asarray(found.selected if sampled else found, dtype=float)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"found must be a table with one row per fit, or a Stability, got shape {table.shape}")
    shares = 100.0 * (table != 0).mean(axis=0)
    own = found.names if sampled and names is None else _names(names, shares.size)
    ax = _bars(own, shares, limit, f"inclusion frequency in {len(table)} {'subsamples' if sampled else 'fits'} (%)", ax)
    if sampled:
        ax.axvline(90.0, color="0.3", linewidth=0.8, linestyle="--")
    return ax


def plot_refit(found: Refit, *, level: float = 0.95, limit: int = 30, ax: Axes | None = None) -> Axes:
    """Plot refitted coefficients with confidence intervals, the most significant first, without the intercept.

    Parameters
    ----------
    found : Refit
        Result of `ksparse.standard_errors`.
    level : float, default=0.95
        Confidence level of the intervals.
    limit : int, default=30
        Maximum number of coefficients; the label counts the others.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the level is not between 0 and 1.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> found = ks.standard_errors(ks.SparseRegressor(k=3).fit(X, y), X, y)
    >>> ks.plotting.plot_refit(found).get_xlabel()
    'coefficient (95 % CI, conditional on selection)'
    """
    features = [i for i, name in enumerate(found.names) if name != "intercept"]
    ratio = np.abs(found.coef) / np.where(found.error > 0, found.error, np.inf)
    shown = sorted(features, key=lambda i: -ratio[i])[:limit]
    low, high = found.interval(level).T
    ax = axes(ax, height=1.2 + 0.26 * max(len(shown), 3))
    places = np.arange(len(shown))
    reach = [found.coef[shown] - low[shown], high[shown] - found.coef[shown]]
    ax.errorbar(found.coef[shown], places, xerr=reach, fmt="o", color=COLOURS[0], markersize=4, capsize=3)
    hidden, label = len(features) - len(shown), f"coefficient ({100 * level:g} % CI, conditional on selection)"
    ax.set(xlabel=label if hidden == 0 else f"{label} ({hidden} more not shown)")
    return _with_rows(ax, [found.names[i] for i in shown])


def plot_loadings(
    components: Any, names: Sequence[str] | None = None, *, limit: int = 40, ax: Axes | None = None
) -> Axes:
    """Plot the loadings of sparse components as a grid, with one row per variable and one column per component.

    Parameters
    ----------
    components : array-like of shape (n_components, n_variables)
        For example `components_` of `ksparse.SparsePCA`.
    names : sequence of str, default=None
        Names of the variables; None for x0, x1, ...
    limit : int, default=40
        Maximum number of variables, those with the largest loadings.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If `components` is not a table, or names and columns differ in number.

    Examples
    --------
    >>> import ksparse as ks
    >>> ax = ks.plotting.plot_loadings([[0.8, 0.6, 0.0], [0.0, 0.0, 1.0]], ["a", "b", "c"])
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['a', 'b', 'c']
    """
    table = np.asarray(components, dtype=float)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"components must be a table with one row per component, got shape {table.shape}")
    names = _names(names, table.shape[1])
    if len(names) != table.shape[1]:
        raise ValueError(f"names and components must have the same length, got {len(names)} and {table.shape[1]}")
    largest = np.abs(table).max(axis=0)
    shown = np.sort([j for j in np.argsort(-largest, kind="stable") if largest[j] > 0][:limit]).astype(int)
    ax = axes(ax, height=1.6 + 0.26 * max(len(shown), 3))
    top = float(largest.max(initial=0.0)) or 1.0
    image = ax.imshow(np.where(table == 0, np.nan, table)[:, shown].T, cmap="PuOr", vmin=-top, vmax=top, aspect="auto")
    ax.set_yticks(range(len(shown)), [words(names[j]) for j in shown])
    ax.set_xticks(range(len(table)), [str(i + 1) for i in range(len(table))])
    hidden = int(np.count_nonzero(largest)) - len(shown)
    ax.set(xlabel="component" if hidden == 0 else f"component ({hidden} variables with smaller loadings not shown)")
    ax.figure.colorbar(image, ax=ax, label="loading")
    ax.grid(False)
    return ax


def _names(names: Sequence[str] | None, n: int) -> Sequence[str]:
    return [f"x{j}" for j in range(n)] if names is None else names


def _bars(names: Sequence[str], values: Any, limit: int, label: str, ax: Axes | None) -> Axes:
    values = np.asarray(values, dtype=float)
    if len(names) != len(values):
        raise ValueError(f"names and values must have the same length, got {len(names)} and {len(values)}")
    shown = [int(i) for i in np.argsort(-np.abs(values), kind="stable") if values[i] != 0][:limit]
    ax = axes(ax, height=1.2 + 0.26 * max(len(shown), 3))
    places = np.arange(len(shown))
    ax.barh(places, values[shown], color=[COLOURS[0] if values[i] > 0 else COLOURS[1] for i in shown])
    hidden = int(np.count_nonzero(values)) - len(shown)
    ax.set(xlabel=label if hidden == 0 else f"{label} ({hidden} smaller ones not shown)")
    return _with_rows(ax, [names[i] for i in shown])


def _with_rows(ax: Axes, names: Sequence[str]) -> Axes:
    """Name the rows from the top down, and mark 0."""
    ax.set_yticks(range(len(names)), [words(name) for name in names])
    ax.invert_yaxis()
    ax.axvline(0, color="0.3", linewidth=0.8)
    return finish(ax, legend=False)
