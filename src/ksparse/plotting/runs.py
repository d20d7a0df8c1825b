"""Pictures of how runs went: convergence, starts, quality against time, a gap closing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.plotting.style import axes, finish, styles, words
from ksparse.result import Result, Trace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PENALTIES = {
    "l1pdca": "top-(k,1)",
    "l1dca": "top-(k,1)",
    "mipdca": "indicators",
}  # of methods; the others' is top-(k,2)
AXES = {"iterations": "iterations", "time": "seconds", "products": "products with the data"}


def plot_convergence(
    runs: Mapping[str, Result | Trace | Mapping[str, Any]],
    against: str = "iterations",
    *,
    best: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """F minus the best F, against iterations, time or products with the data, one line per method.

    F is φ plus a penalty. Runs on other penalties, or with another weight ρ, have another F: each run is compared with those that have its
    penalty and ρ, and the legend says the ρ of each where they differ.

    Parameters
    ----------
    runs : mapping from str to Result, Trace or mapping
        Results, traces, or mappings with F, elapsed and iteration, by the name of their line.
    against : {"iterations", "time", "products"}, default="iterations"
        What the horizontal axis shows.
    best : float, default=None
        The F to subtract; None for the least of all runs that can be compared.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None for a new figure of pyplot's.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If there is no run, no finite F, or `against` is not known; if `best` is given for runs that cannot be compared.

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
    if against not in AXES:
        raise ValueError(f"against must be one of {', '.join(AXES)}, got {against!r}")
    curves = {name: _curve(run, against) for name, run in runs.items()}
    if not curves:
        raise ValueError("runs must hold at least one run, got none")
    seen = np.concatenate([F[np.isfinite(F)] for _, F in curves.values()])
    if not seen.size:
        raise ValueError("runs must hold at least one finite value of F")
    kinds = {name: _objective(run) for name, run in runs.items()}
    several = len(set(kinds.values())) > 1
    if several and best is not None:
        raise ValueError(
            f"best needs runs on one penalty with one rho, got {', '.join(map(_said, dict.fromkeys(kinds.values())))}"
        )
    ax = axes(ax)
    for (name, (x, F)), (colour, _, dash) in zip(curves.items(), styles(curves), strict=True):
        alike = np.concatenate([curves[other][1] for other in curves if kinds[other] == kinds[name]])
        low = float(np.min(alike[np.isfinite(alike)], initial=np.inf)) if best is None else best
        gap = np.where(F > low, F - low, np.nan)  # the best point itself has no place on a log scale
        label = f"{name}, {_said(kinds[name])}" if several else name
        ax.semilogy(x, gap, label=words(label), color=colour, linestyle=dash, linewidth=1.6)
    ax.set(xlabel=AXES[against], ylabel="F − best F of the same ρ" if several else "F − best F")
    ax.set_xlim(left=0)
    return finish(ax, legend=True)


def _objective(run: Result | Trace | Mapping[str, Any]) -> tuple[str, float | None]:
    """Return the penalty in F and its weight, as far as the run knows them."""
    if isinstance(run, Result):
        return ("" if run.rho is None else PENALTIES.get(run.method, "")), run.rho
    return "", None if isinstance(run, Trace) else run.get("rho")


def _said(kind: tuple[str, float | None]) -> str:
    penalty, rho = kind
    return f"{penalty and penalty + ' '}{'no ρ' if rho is None else f'ρ = {rho:g}'}"


def _curve(run: Result | Trace | Mapping[str, Any], against: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    trace = run.trace if isinstance(run, Result) else run
    if isinstance(trace, Trace):
        F = trace.F
        return {"iterations": np.arange(len(F)), "time": trace.elapsed, "products": trace.products}[against], F
    column = {"iterations": "iteration", "time": "elapsed", "products": "products"}[against]
    if column not in trace or "F" not in trace:
        raise ValueError(
            f"a run as a mapping must hold F and {column} to be drawn against {against}, got {', '.join(trace)}"
        )
    return np.asarray(trace[column], dtype=float), np.asarray(
        [np.nan if f is None else f for f in trace["F"]], dtype=float
    )


def plot_starts(
    table: pd.DataFrame, *, reference: float | None = None, label: str = "optimum", ax: Axes | None = None
) -> Axes:
    """Box plot of the objective over random starts, one box per method; every start is a dot beside its box.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns method and objective.
    reference : float, default=None
        Where to draw a line across.
    label : str, default="optimum"
        What that line is.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None for a new figure of pyplot's.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

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
    boxes = ax.boxplot(
        values,
        tick_labels=[words(method) for method in methods],
        widths=0.5,
        patch_artist=True,
        showfliers=False,
        medianprops={"color": "black"},
    )
    spread = np.random.default_rng(0)
    for position, ((colour, _, _), box, points) in enumerate(zip(styles(methods), boxes["boxes"], values, strict=True)):
        box.set(facecolor=colour, alpha=0.35)
        ax.plot(position + 1 + spread.uniform(-0.17, 0.17, len(points)), points, ".", color=colour, markersize=4)
    if reference is not None:
        ax.axhline(reference, color="0.3", linewidth=1, linestyle="--", label=label)
    ax.set(ylabel="objective (smaller is better)")
    return finish(ax, legend=reference is not None)


def plot_objective_time(table: pd.DataFrame, *, time: str = "time", ax: Axes | None = None) -> Axes:
    """Objective above the best of its instance, in percent, against seconds: down is better, left is faster.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns instance, method, objective and `time`; one marker per row, one shape and colour per method.
    time : str, default="time"
        The column with the seconds.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None for a new figure of pyplot's.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If no row has a finite objective.

    Examples
    --------
    >>> import pandas as pd, ksparse as ks
    >>> table = pd.DataFrame({"instance": ["p", "p"], "method": ["a", "b"], "objective": [2.0, 1.0], "time": [0.1, 3.0]})
    >>> ks.plotting.plot_objective_time(table).get_xlabel()
    'seconds'
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
        ax.plot(
            table[time][rows],
            excess[rows],
            marker,
            color=colour,
            label=words(method),
            markersize=7,
            alpha=0.85,
            linestyle="none",
        )
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(-0.02, max(1.0, 3.0 * float(excess.max())))
    ax.set(xlabel="seconds", ylabel="above the best objective, %")
    return finish(ax, legend=True)


def plot_gap(records: Mapping[str, Sequence[Any]] | Sequence[Any], *, ax: Axes | None = None) -> Axes:
    """The gap of a proof closing: (value − lower bound)/|value| in percent against seconds, one line per proof.

    Parameters
    ----------
    records : sequence, or mapping from str to sequence
        What a callback of `ksparse.minimize` with `gap=` was told: entries with elapsed and gap. Entries without a finite gap, as those
        of the search before the proof, are left out.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None for a new figure of pyplot's.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

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
    'gap, %'
    """
    named = records if isinstance(records, Mapping) else {"": records}
    lines = {
        name: [(at["elapsed"], 100.0 * at["gap"]) for at in told if np.isfinite(at.get("gap", np.inf))]
        for name, told in named.items()
    }
    if not any(lines.values()):
        raise ValueError(
            "records must hold at least one entry with a finite gap, from a callback of minimize(..., gap=...)"
        )
    ax = axes(ax)
    for (name, points), (colour, marker, _) in zip(lines.items(), styles(lines), strict=True):
        seconds, gaps = np.array(points).reshape(-1, 2).T
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "drawstyle": "steps-post"}
        ax.plot(seconds, np.maximum.accumulate(gaps[::-1])[::-1], label=words(name), **look)  # a bound never gets worse
    ax.set(xlabel="seconds", ylabel="gap, %")
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_ylim(bottom=0)
    return finish(ax, legend=isinstance(records, Mapping))
