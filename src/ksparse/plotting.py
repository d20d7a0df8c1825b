"""Pictures of runs and answers (matplotlib). Every function draws on `ax`, or on a new figure, and returns the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.result import Result, Trace
from ksparse.solve.near_optimal import NearOptimal
from ksparse.solve.path import KPath

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ksparse.estimators.refit import Refit
    from ksparse.estimators.stability import Stability

# Okabe and Ito (2008): told apart by colour-blind eyes too. Methods keep their colour from picture to picture.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_OWN = {"auto": 6, "l2-PDCA": 0, "l2-APDCA": 1, "l1-DCA": 2, "MIP-DCA": 3, "APDCA fix": 1, "APDCA bt": 4, "pDCAe": 2}
AXES = {"iterations": "iterations", "time": "seconds", "products": "products with the data"}


def style(method: str, position: int = 0) -> tuple[str, str, Any]:
    """Colour, marker and dash of a method; one we do not know takes those of its position."""
    i = _OWN.get(method, position % len(COLOURS))
    return COLOURS[i], MARKERS[i], DASHES[i]


def plot_convergence(
    runs: Mapping[str, Result | Trace | Mapping[str, Any]],
    against: str = "iterations",
    *,
    best: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """F minus the best F, against iterations, time or products with the data, one line per method.

    runs : results, traces, or mappings with F, elapsed and iteration. best : the F to subtract; default the least of all runs.
    """
    if against not in AXES:
        raise ValueError(f"against must be one of {', '.join(AXES)}, got {against!r}")
    curves = {name: _curve(run, against) for name, run in runs.items()}
    if not curves:
        raise ValueError("runs must hold at least one run, got none")
    seen = np.concatenate([F[np.isfinite(F)] for _, F in curves.values()])
    if not seen.size:
        raise ValueError("runs must hold at least one finite value of F")
    low = float(seen.min()) if best is None else best
    ax = _axes(ax)
    for position, (name, (x, F)) in enumerate(curves.items()):
        colour, _, dash = style(name, position)
        gap = np.where(F > low, F - low, np.nan)  # the best point itself has no place on a log scale
        ax.semilogy(x, gap, label=_words(name), color=colour, linestyle=dash, linewidth=1.6)
    ax.set(xlabel=AXES[against], ylabel="F − best F")
    ax.set_xlim(left=0)
    return _finish(ax, legend=True)


def _curve(run: Result | Trace | Mapping[str, Any], against: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    trace = run.trace if isinstance(run, Result) else run
    if isinstance(trace, Trace):
        F = trace.F
        return {"iterations": np.arange(len(F)), "time": trace.elapsed, "products": trace.products}[against], F
    column = {"iterations": "iteration", "time": "elapsed", "products": "products"}[against]
    if column not in trace or "F" not in trace:
        raise ValueError(f"a run as a mapping must hold F and {column} to be drawn against {against}, got {', '.join(trace)}")
    return np.asarray(trace[column], dtype=float), np.asarray([np.nan if f is None else f for f in trace["F"]], dtype=float)


def plot_starts(table: pd.DataFrame, *, reference: float | None = None, label: str = "optimum", ax: Axes | None = None) -> Axes:
    """Box plot of the objective over random starts, one box per method; every start is a dot beside its box.

    table : columns method and objective. reference, label : a line and what it is.
    """
    ax = _axes(ax)
    methods = list(dict.fromkeys(table["method"]))
    if not methods:
        raise ValueError("table must hold at least one row")
    values = [table.loc[table["method"] == method, "objective"].dropna().to_numpy() for method in methods]
    boxes = ax.boxplot(
        values,
        tick_labels=[_words(method) for method in methods],
        widths=0.5,
        patch_artist=True,
        showfliers=False,
        medianprops={"color": "black"},
    )
    spread = np.random.default_rng(0)
    for position, (method, box, points) in enumerate(zip(methods, boxes["boxes"], values, strict=True)):
        colour = style(method, position)[0]
        box.set(facecolor=colour, alpha=0.35)
        ax.plot(position + 1 + spread.uniform(-0.17, 0.17, len(points)), points, ".", color=colour, markersize=4)
    if reference is not None:
        ax.axhline(reference, color="0.3", linewidth=1, linestyle="--", label=label)
    ax.set(ylabel="objective (smaller is better)")
    return _finish(ax, legend=reference is not None)


def plot_objective_time(table: pd.DataFrame, *, time: str = "time", ax: Axes | None = None) -> Axes:
    """Objective above the best of its instance, in percent, against seconds: down is better, left is faster.

    table : columns instance, method, objective and `time`; one marker per row, one shape and colour per method.
    """
    ax = _axes(ax)
    table = table[np.isfinite(table["objective"].to_numpy(dtype=float))]
    if table.empty:
        raise ValueError("table must hold at least one row with an objective")
    groups = table.groupby(["instance", "seed"] if "seed" in table.columns else ["instance"])["objective"]
    best, size = groups.transform("min"), groups.transform(lambda values: values.abs().max())
    excess = 100.0 * (table["objective"] - best) / best.abs().where(best.abs() > 1e-12 * size, size).clip(lower=1e-300)
    for position, method in enumerate(dict.fromkeys(table["method"])):
        rows = (table["method"] == method).to_numpy()
        colour, marker, _ = style(method, position)
        ax.plot(table[time][rows], excess[rows], marker, color=colour, label=_words(method), markersize=7, alpha=0.85, linestyle="none")
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(-0.02, max(1.0, 3.0 * float(excess.max())))
    ax.set(xlabel="seconds", ylabel="above the best objective, %")
    return _finish(ax, legend=True)


def plot_coefficients(names: Sequence[str], values: Any, *, limit: int = 30, ax: Axes | None = None) -> Axes:
    """Bars of the nonzero coefficients with their names, the largest first; at most `limit` of them."""
    return _bars(names, values, limit, "coefficient", ax)


def plot_weights(names: Sequence[str], weights: Any, *, limit: int = 30, ax: Axes | None = None) -> Axes:
    """Bars of the positions of a portfolio in percent, the largest first; at most `limit` of them."""
    return _bars(names, 100.0 * np.asarray(weights, dtype=float), limit, "weight, %", ax)


def plot_frequencies(found: NearOptimal, names: Sequence[str] | None = None, *, limit: int = 30, ax: Axes | None = None) -> Axes:
    """In how many of the nearly best supports each variable is, in percent, the most frequent first; at most `limit` of them."""
    shares = 100.0 * found.frequencies
    label = f"in this share of {len(found)} supports, %"
    return _bars([f"x{j}" for j in range(shares.size)] if names is None else names, shares, limit, label, ax)


def plot_path(path: KPath, names: Sequence[str] | None = None, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """The entries of the answers against k, one line per variable that is ever in; the `limit` largest are named."""
    return _lines(path.ks, path.x, names, limit, "entry", ax)


def plot_coefficient_path(ks: Any, coef_path: Any, names: Sequence[str] | None = None, *, limit: int = 12, ax: Axes | None = None) -> Axes:
    """The coefficients of models against k, such as `ks_` and `coef_path_` of an estimator that chose k; the `limit` largest are named."""
    coef, sizes = np.asarray(coef_path, dtype=float), np.asarray(ks)
    if coef.ndim != 2 or len(coef) != len(sizes):
        raise ValueError(f"coef_path must have one row per k, {len(sizes)}, got shape {coef.shape}: of several classes draw one at a time")
    return _lines(sizes, coef, names, limit, "coefficient", ax)


def plot_stability(found: Stability, *, limit: int = 30, ax: Axes | None = None) -> Axes:
    """In how many subsamples each feature was selected, in percent, the most frequent first; at most `limit` of them."""
    ax = _bars(found.names, 100.0 * found.frequencies, limit, f"selected in this share of {len(found.selected)} subsamples, %", ax)
    ax.axvline(90.0, color="0.3", linewidth=0.8, linestyle="--")
    return ax


def plot_refit(found: Refit, *, level: float = 0.95, limit: int = 30, ax: Axes | None = None) -> Axes:
    """The refitted coefficients with their intervals, the largest beside their errors first; at most `limit` of them, no intercept."""
    features = [i for i, name in enumerate(found.names) if name != "intercept"]
    ratio = np.abs(found.coef) / np.where(found.error > 0, found.error, np.inf)
    shown = sorted(features, key=lambda i: -ratio[i])[:limit]
    ax = _axes(ax, height=1.2 + 0.26 * max(len(shown), 3))
    low, high = found.interval(level).T
    places = np.arange(len(shown))
    reach = [found.coef[shown] - low[shown], high[shown] - found.coef[shown]]
    ax.errorbar(found.coef[shown], places, xerr=reach, fmt="o", color=COLOURS[0], markersize=4, capsize=3)
    ax.set_yticks(places, [_words(found.names[i]) for i in shown])
    ax.invert_yaxis()
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.set(xlabel=f"coefficient, {100 * level:g} % interval given the features")
    return _finish(ax, legend=False)


def _lines(ks: Any, x: Any, names: Sequence[str] | None, limit: int, label: str, ax: Axes | None) -> Axes:
    """One line per column that is ever other than 0, the largest named."""
    ax = _axes(ax)
    members = [int(j) for j in np.argsort(-np.abs(x).max(axis=0), kind="stable") if x[:, j].any()]
    for position, j in enumerate(members):
        named = position < limit
        colour, marker, dash = COLOURS[position % 7], MARKERS[position % 7], DASHES[(position // 7) % 7]
        look = {"color": colour, "marker": marker, "linestyle": dash} if named else {"color": "0.75", "linewidth": 0.8}
        word = (_words(names[j]) if names is not None else f"x{j}") if named else None
        ax.plot(ks, x[:, j], label=word, markersize=4, **look)
    hidden = len(members) - limit
    ax.set(xlabel="k, nonzeros allowed" + (f" (grey: {hidden} more)" if hidden > 0 else ""), ylabel=label)
    return _finish(ax, legend=bool(members))


def plot_frontier(path: KPath, values: Any = None, *, label: str = "objective", ax: Axes | None = None) -> Axes:
    """The objective, or `values` one per answer such as risk or return, against k."""
    ax = _axes(ax)
    heights = path.objective if values is None else np.asarray(values, dtype=float)
    if len(heights) != len(path):
        raise ValueError(f"values must hold one number per k, {len(path)}, got {len(heights)}")
    ax.plot(path.ks, heights, color=COLOURS[0], marker="o", markersize=4)
    ax.set(xlabel="k, nonzeros allowed", ylabel=label)
    return _finish(ax, legend=False)


def _bars(names: Sequence[str], values: Any, limit: int, label: str, ax: Axes | None) -> Axes:
    values = np.asarray(values, dtype=float)
    if len(names) != len(values):
        raise ValueError(f"names and values must have the same length, got {len(names)} and {len(values)}")
    shown = [int(i) for i in np.argsort(-np.abs(values), kind="stable") if values[i] != 0][:limit]
    ax = _axes(ax, height=1.2 + 0.26 * max(len(shown), 3))
    places = np.arange(len(shown))
    ax.barh(places, values[shown], color=[COLOURS[0] if values[i] > 0 else COLOURS[1] for i in shown])
    ax.set_yticks(places, [_words(names[i]) for i in shown])
    ax.invert_yaxis()
    ax.axvline(0, color="0.3", linewidth=0.8)
    hidden = int(np.count_nonzero(values)) - len(shown)
    ax.set(xlabel=label if hidden == 0 else f"{label} ({hidden} smaller ones not shown)")
    return _finish(ax, legend=False)


def _words(name: Any) -> str:
    """A name as text: no mathematics between dollar signs, and not longer than a picture has room for."""
    text = str(name).replace("$", r"\$")
    return text if len(text) <= 40 else text[:37] + "..."


def _axes(ax: Axes | None, height: float = 4.2) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ksparse[plot]'") from error
    return Figure(figsize=(7, height), layout="constrained", facecolor="white").subplots()


def _finish(ax: Axes, legend: bool) -> Axes:
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:  # outside the axes, where it covers nothing
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, fontsize="small")
    return ax
