"""Report of `scaling.py`: slopes, the Markdown table, the claim about memory, the plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ksparse.plotting import style
from scaling_measure import METHODS, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLAIM = 2.0  # first-order methods never need more than so many times the input, input included
MEMORY = ("memory, steps", "memory, with L", "memory, auto")
HEADINGS = ("sweep", "value", "input (MiB)", *(f"{method} (ms a step)" for method in METHODS), "auto (s)", *MEMORY)
NAMES = {"m": "m, rows", "n": "n, columns", "k": "k, nonzeros of x", "nnz": "nonzeros of A"}
MIB = 2.0**20


@dataclass(frozen=True)
class Measured:
    """A sweep with its rows, and notes on the sizes that are missing."""

    variable: str
    rows: list[Row]
    missing: list[str]

    @property
    def values(self) -> list[int]:
        """Return the variable of the sweep."""
        return [row.nnz if self.variable == "nnz" else getattr(row.shape, self.variable) for row in self.rows]

    @property
    def kind(self) -> str:
        """Return "dense" or "CSR" with the fixed sizes."""
        shape, csr = self.rows[0].shape, self.rows[0].shape.row_nonzeros
        fixed = [f"{name} = {getattr(shape, name)}" for name in ("m", "n", "k") if name != self.variable]
        return ", ".join([*fixed, "dense" if csr is None else "CSR" if self.variable == "nnz" else f"CSR, {csr} a row"])


def upper_half(values: Sequence[float]) -> np.ndarray:
    """Mark the values in the upper half of their range, on a log scale."""
    logs = np.log(np.asarray(values, dtype=float))
    return logs >= (logs.min() + logs.max()) / 2 - 1e-9


def slope(values: Sequence[float], heights: Sequence[float]) -> float:
    """Fit p of heights ~ valuesᵖ by least squares on logs over the upper half of the range."""
    keep = upper_half(values) if len(values) else np.zeros(0, dtype=bool)
    if keep.sum() < 2:
        return math.nan
    return float(
        np.polyfit(np.log(np.asarray(values, dtype=float)[keep]), np.log(np.asarray(heights, dtype=float)[keep]), 1)[0]
    )


def peak(row: Row, calls: Sequence[str]) -> float:
    """Return the peak bytes of the call that needs most, input included."""
    return float(row.input_bytes + max(row.extra_bytes[call] for call in calls))


CURVES: dict[str, Callable[[Row], float]] = {  # in the order of the table's columns
    "input": lambda row: row.input_bytes,
    **{method: lambda row, method=method: row.seconds[method] for method in (*METHODS, "auto")},
    "memory, steps": lambda row: peak(row, METHODS),
    "memory, with L": lambda row: peak(row, (*METHODS, "L")),
    "memory, auto": lambda row: peak(row, ("auto",)),
}


def power(p: float) -> str:
    return "-" if math.isnan(p) else f"{p:.2f}".replace("-0.00", "0.00")


def table(found: Sequence[Measured]) -> str:
    """Return one line per size, then one with the slopes, for every sweep."""
    lines = [_line(HEADINGS), _line(["---", *["--:"] * (len(HEADINGS) - 1)])]
    for part in found:
        for place, (value, row) in enumerate(zip(part.values, part.rows, strict=True)):
            size = row.input_bytes
            cells = [f"{part.variable} ({part.kind})" if place == 0 else "", str(value), f"{size / MIB:.3g}"]
            cells += [f"{1e3 * row.seconds[method]:.3g}" for method in METHODS] + [f"{row.seconds['auto']:.3g}"]
            cells += [f"{CURVES[name](row) / size:.2f} ×" for name in MEMORY]
            lines.append(_line(cells))
        if part.rows:
            slopes = [slope(part.values, [curve(row) for row in part.rows]) for curve in CURVES.values()]
            lines.append(_line(["", "**slope**", *(f"**{power(p)}**" for p in slopes)]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def claim(found: Sequence[Measured], dense: bool) -> list[str]:
    """Report whether the first-order methods stayed within their share of memory, with the worst case."""
    rows = [row for part in found for row in part.rows if (row.shape.row_nonzeros is None) == dense]
    kind = "dense" if dense else "CSR"
    if not rows:
        return [f"- {kind}: not measured"]
    return [
        f"- {kind}, {_verdict(rows, 'memory, steps', 'steps alone')}",
        f"- {kind}, {_verdict(rows, 'memory, with L', 'with L')}",
    ]


def _verdict(rows: Sequence[Row], column: str, what: str) -> str:
    ratios = [CURVES[column](row) / row.input_bytes for row in rows]
    worst, beyond = rows[int(np.argmax(ratios))], sum(ratio > CLAIM for ratio in ratios)
    verdict = (
        f"does not hold at {beyond} of {len(rows)} sizes" if beyond else f"holds at {len(rows)} of {len(rows)} sizes"
    )
    share = worst.nnz / worst.shape.m
    vectors = max((CURVES[column](row) - row.input_bytes) / (8 * (row.shape.m + row.shape.n)) for row in rows)
    return (
        f"{what}: **{verdict}**, worst {max(ratios):.2f} × (m = {worst.shape.m}, n = {worst.shape.n}, {share:.3g} "
        f"entries a row); beyond the input never more than {vectors:.3g} vectors of length m + n"
    )


def report(found: Sequence[Measured], *, steps: int, repeats: int, threads: int) -> str:
    """Return the report: table, description of columns, claim, and missing sizes."""
    missing = [f"- left out of the sweep over {part.variable}: {note}" for part in found for note in part.missing]
    about = (
        f"Planted least squares, float64, {threads} thread{'s' * (threads != 1)}; medians of {repeats} "
        f"run{'s' * (repeats != 1)} after a warm-up (fewer where a run takes seconds). First-order methods: {steps} "
        "fixed steps on λ(‖x‖₁ − ‖x‖₂), in the sweep over k on "
        "ρ(‖x‖² − |||x|||²_{k,2}). auto: the whole of `minimize(loss, k)`. "
        "Memory: what Python and NumPy hold at the peak of a call of its own (tracemalloc), A and b counted in, over "
        "the bytes of A and b; of the first-order methods the one that needs most. L: checking the data and computing "
        "the Lipschitz constant, once, before the steps. Slopes: least squares on logs over the upper half of the "
        "range (on a log scale), where overheads no longer dominate; those of memory are of the bytes."
    )
    claims = [f"Claim: first-order methods need at most {CLAIM:g} × the memory of the input (input included):", ""]
    claims += claim(found, dense=True) + claim(found, dense=False)
    return "\n".join(["# Scaling", "", about, "", table(found), "", *claims, *(["", *missing] if missing else []), ""])


def draw(parts: Sequence[Measured]) -> Figure:
    """Plot seconds above and memory below, one column per sweep over the same variable."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.0 + 6.4 * len(parts), 8.6), layout="constrained", facecolor="white")
    figure.suptitle("slopes are fitted over the shaded half", fontsize="medium")
    panels = figure.subplots(2, len(parts), squeeze=False)
    for (upper, lower), part in zip(panels.T, parts, strict=True):
        for position, name in enumerate((*METHODS, "auto")):
            whole = "whole" if name == "auto" else "a step"
            _curve(upper, part, CURVES[name], f"{name}, {whole}", style(name, position))
        _curve(lower, part, CURVES["input"], "input", ("0.45", "", ":"))
        _curve(lower, part, lambda row: CLAIM * row.input_bytes, f"{CLAIM:g} × input", ("0.45", "", "--"))
        for name, look in zip(MEMORY, (style("apdca", 1), style("pdcae", 2), style("auto")), strict=True):
            _curve(lower, part, CURVES[name], name.removeprefix("memory, "), look)
        upper.set(ylabel="time")
        lower.set(ylabel="peak memory, input included")
        for ax in (upper, lower):
            _finish(ax, part, "s" if ax is upper else "B")
    return figure


def _curve(ax: Axes, part: Measured, height: Callable[[Row], float], label: str, look: tuple) -> None:
    colour, marker, dash = look
    heights = [height(row) for row in part.rows]
    label = f"{label}: slope {power(slope(part.values, heights))}"
    ax.loglog(
        part.values, heights, color=colour, marker=marker, linestyle=dash, label=label, markersize=5, linewidth=1.5
    )


def _finish(ax: Axes, part: Measured, unit: str) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    values = part.values
    fitted = np.asarray(values)[upper_half(values)]
    ax.axvspan(fitted.min(), fitted.max(), color="0.5", alpha=0.08, linewidth=0)
    ax.set_xticks(values, [f"{value:,}" for value in values])
    ax.set_xticks([], minor=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(EngFormatter(unit))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel(f"{NAMES[part.variable]} ({part.kind})")
    # beside the data
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
