"""Plots of runs: convergence, random starts, objective against time, and the optimality gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.plotting.style import axes, finish, styles, words
from ksparse.result import Result, Trace
from ksparse.util.checks import check_choice

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Run = Result | Trace | Mapping[str, Any]
PENALTIES = {"l1pdca": "top-(k,1)", "l1dca": "top-(k,1)", "mipdca": "indicators"}  # of methods; others: top-(k,2)
AXES = {"iterations": "iterations", "time": "time (s)", "products": "products with the data"}
COLUMNS = {"iterations": "iteration", "time": "elapsed", "products": "products"}  # of runs as mappings


def plot_convergence(
    runs: Mapping[str, Run], against: str = "iterations", *, best: float | None = None, ax: Axes | None = None
) -> Axes:
    """Plot F minus the best F against iterations, time or products with the data, one line per run.

    F is φ plus a penalty, so only runs with the same penalty and weight ρ have the same F. Each run is compared with
    those; if ρ or the penalty differ, the legend shows them.

    Parameters
    ----------
    runs : mapping from str to Result, Trace or mapping
        Results, traces, or mappings with F, elapsed and iteration, by the name of the line.
    against : {"iterations", "time", "products"}, default="iterations"
        Quantity on the horizontal axis.
    best : float, default=None
        The F to subtract; None for the smallest of all comparable runs.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If there is no run, no finite F, or `against` is unknown; if `best` is given for runs that are not comparable.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> loss = ks.LeastSquares(rng.standard_normal((40, 60)), rng.standard_normal(40))
    >>> runs = {name: ks.minimize_penalized(loss, ks.L1(0.5), method=name) for name in ("pdca", "apdca")}
    >>> ax = ks.plotting.plot_convergence(runs)
    >>> ax.get_ylabel()
    'F − best F'
    """
    check_choice(against, "against", AXES)
    curves = {name: _curve(run, against) for name, run in runs.items()}
    if not curves:
        raise ValueError("runs must hold at least one run, got none")
    seen = np.concatenate([F[np.isfinite(F)] for _, F in curves.values()])
    if not seen.size:
        raise ValueError("runs must hold at least one finite value of F")
    kinds = {name: _objective(run) for name, run in runs.items()}
    several = len(set(kinds.values())) > 1
    if several and best is not None:
        labels = ", ".join(map(_label, dict.fromkeys(kinds.values())))
        raise ValueError(f"best requires runs with one penalty and one rho, got {labels}")
    ax = axes(ax)
    for (name, (x, F)), (colour, _, dash) in zip(curves.items(), styles(curves), strict=True):
        alike = np.concatenate([curves[other][1] for other in curves if kinds[other] == kinds[name]])
        low = float(np.min(alike[np.isfinite(alike)], initial=np.inf)) if best is None else best
        gap = np.where(F > low, F - low, np.nan)
        label = f"{name}, {_label(kinds[name])}" if several else name
        ax.semilogy(x, gap, label=words(label), color=colour, linestyle=dash, linewidth=1.6)
    ax.set(xlabel=AXES[against], ylabel="F − best F at the same ρ" if several else "F − best F")
    ax.set_xlim(left=0)
    return finish(ax, legend=True)


def _objective(run: Run) -> tuple[str, float | None]:
    """Return the penalty in F and its weight, as far as they are known."""
    if isinstance(run, Result):
        return ("" if run.rho is None else PENALTIES.get(run.method, "")), run.rho
    return "", None if isinstance(run, Trace) else run.get("rho")


def _label(kind: tuple[str, float | None]) -> str:
    penalty, rho = kind
    return f"{penalty and penalty + ' '}{'no ρ' if rho is None else f'ρ = {rho:g}'}"


def _curve(run: Run, against: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    trace = run.trace if isinstance(run, Result) else run
    if isinstance(trace, Trace):
        F = trace.F
        return {"iterations": np.arange(len(F)), "time": trace.elapsed, "products": trace.products}[against], F
    column = COLUMNS[against]
    if column not in trace or "F" not in trace:
        held = ", ".join(trace)
        raise ValueError(f"a run as a mapping must hold F and {column} to be plotted against {against}, got {held}")
    return np.asarray(trace[column], dtype=float), np.asarray(trace["F"], dtype=float)


def plot_starts(
    table: pd.DataFrame, *, reference: float | None = None, label: str = "optimum", ax: Axes | None = None
) -> Axes:
    """Plot the objective over random starts, one box per method and one dot per start.

    Parameters
    ----------
    table : pandas.DataFrame
        Table with columns method and objective.
    reference : float, default=None
        Height of a horizontal line.
    label : str, default="optimum"
        Label of that line.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the table has no row.

    Examples
    --------
    >>> import pandas as pd, ksparse as ks
    >>> table = pd.DataFrame({"method": ["a", "a", "b", "b"], "objective": [1.0, 1.2, 0.9, 1.1]})
    >>> ax = ks.plotting.plot_starts(table, reference=0.8)
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['a', 'b']
    """
    ax = axes(ax)
    methods = list(dict.fromkeys(table["method"]))
    if not methods:
        raise ValueError("table must hold at least one row")
    values = [table.loc[table["method"] == method, "objective"].dropna().to_numpy() for method in methods]
    look: dict[str, Any] = {"widths": 0.5, "patch_artist": True, "showfliers": False, "medianprops": {"color": "black"}}
    boxes = ax.boxplot(values, tick_labels=[words(method) for method in methods], **look)
    spread = np.random.default_rng(0)
    for position, ((colour, _, _), box, points) in enumerate(zip(styles(methods), boxes["boxes"], values, strict=True)):
        box.set(facecolor=colour, alpha=0.35)
        ax.plot(position + 1 + spread.uniform(-0.17, 0.17, len(points)), points, ".", color=colour, markersize=4)
    if reference is not None:
        ax.axhline(reference, color="0.3", linewidth=1, linestyle="--", label=label)
    ax.set(ylabel="objective (smaller is better)")
    return finish(ax, legend=reference is not None)


def plot_objective_time(table: pd.DataFrame, *, time: str = "time", ax: Axes | None = None) -> Axes:
    """Plot the objective relative to the best of its instance, in percent, against time.

    Parameters
    ----------
    table : pandas.DataFrame
        Table with columns instance, method, objective and `time`; one marker per row, one shape and colour per method.
    time : str, default="time"
        Column with the times in seconds.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If no row has a finite objective.

    Examples
    --------
    >>> import pandas as pd, ksparse as ks
    >>> values = {"method": ["a", "b"], "objective": [2.0, 1.0], "time": [0.1, 3.0]}
    >>> table = pd.DataFrame({"instance": ["p", "p"], **values})
    >>> ks.plotting.plot_objective_time(table).get_xlabel()
    'time (s)'
    """
    ax = axes(ax)
    table = table[np.isfinite(table["objective"].to_numpy(dtype=float))]
    if table.empty:
        raise ValueError("table must hold at least one row with an objective")
    groups = table.groupby(["instance", "seed"] if "seed" in table.columns else ["instance"])["objective"]
    best, size = groups.transform("min"), groups.transform(lambda values: values.abs().max())
    excess = 100.0 * (table["objective"] - best) / best.abs().where(best.abs() > 1e-12 * size, size).clip(lower=1e-300)
    methods = list(dict.fromkeys(table["method"]))
    for method, (colour, marker, _) in zip(methods, styles(methods), strict=True):
        rows = (table["method"] == method).to_numpy()
        look: dict[str, Any] = {"color": colour, "markersize": 7, "alpha": 0.85, "linestyle": "none"}
        ax.plot(table[time][rows], excess[rows], marker, label=words(method), **look)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(-0.02, max(1.0, 3.0 * float(excess.max())))
    ax.set(xlabel="time (s)", ylabel="above the best objective (%)")
    return finish(ax, legend=True)


def plot_gap(records: Mapping[str, Sequence[Any]] | Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """Plot the optimality gap of branch and bound, (value − lower bound)/|value| in percent, against time.

    Parameters
    ----------
    records : sequence, or mapping from str to sequence
        Arguments received by a callback of `ksparse.minimize` with `gap=`: entries with elapsed and gap, one sequence
        per line. Entries without a finite gap, from the search before branch and bound, are left out.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If no entry has a finite gap.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> records = []
    >>> def listen(intermediate_result):
    ...     records.append(intermediate_result)
    >>> loss = ks.LeastSquares(rng.standard_normal((60, 30)), rng.standard_normal(60))
    >>> result = ks.minimize(loss, 8, gap=0.01, callback=listen)
    >>> ks.plotting.plot_gap(records).get_ylabel()
    'gap (%)'
    """
    named = records if isinstance(records, Mapping) else {"": records}
    lines = {
        name: [(at["elapsed"], 100.0 * at["gap"]) for at in entries if np.isfinite(at.get("gap", np.inf))]
        for name, entries in named.items()
    }
    if not any(lines.values()):
        raise ValueError("records must hold at least one entry with a finite gap, from callbacks of minimize with gap=")
    ax = axes(ax)
    for (name, points), (colour, marker, _) in zip(lines.items(), styles(lines), strict=True):
        seconds, gaps = np.array(points).reshape(-1, 2).T
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "drawstyle": "steps-post"}
        ax.plot(seconds, np.maximum.accumulate(gaps[::-1])[::-1], label=words(name), **look)
    ax.set(xlabel="time (s)", ylabel="gap (%)")
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_ylim(bottom=0)
    return finish(ax, legend=isinstance(records, Mapping))
