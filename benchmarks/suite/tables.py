"""Markdown of a run: machine and versions, a table per problem, the claims, and missing contenders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

from ksparse.experiments.run import environment
from suite.claims import Claim, claims
from suite.contenders import OURS
from suite.harness import Settings
from suite.problems import GROUPS
from suite.row import Row, best_of, problems_of

LIBRARIES = ("abess", "skscope", "jax", "skglm", "el0ps", "PySCIPOpt", "skfolio", "cvxpy")
COLUMNS = (
    "contender",
    "objective",
    "excess %",
    "feasible",
    "nonzeros",
    "s",
    "time / ours",
    "warm-up s",
    "peak MiB",
    "MiB before",
    "note",
)
LEFT = ("contender", "feasible", "note", "problem", "claim", "holds")


def report(rows: Sequence[Row], settings: Settings) -> str:
    """Return the complete report."""
    parts = ["# Benchmarks", _environment(settings)]
    for group in dict.fromkeys(row.group for row in rows):
        parts += [f"## {GROUPS[group].title}", *problem_tables([row for row in rows if row.group == group])]
    small = "The sizes of this run are the quick ones; the claims are made for the full ones." if settings.quick else ""
    parts += ["## Claims", small, claims_table(claims(list(rows))), "## Not there", missing(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _environment(settings: Settings) -> str:
    found = environment() | {name: _version(name) for name in LIBRARIES}
    found.pop("linear algebra threads")  # of this process, not of the children
    clock = ", in seconds of the processor" if settings.processor else ""
    run = (
        f"Each contender in a process of its own, {settings.threads} thread(s), {settings.limit:g} s for a solve, "
        f"medians of up to {settings.repeats} solves after a warm-up{clock}; objectives and constraints recomputed "
        "from the raw data."
    )
    return run + "\n\n" + ", ".join(f"{name}: {value}" for name, value in found.items()) + "."


def _version(package: str) -> str:
    for name in (package, f"{package}-base"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"


def problem_tables(rows: Sequence[Row]) -> Iterable[str]:
    """Yield one table per problem: feasible rows by objective, then infeasible rows, then rows without an answer."""
    for (_, problem), several in problems_of(list(rows)).items():
        best = best_of(several)
        ours = next((row.time for row in several if row.contender == OURS), math.nan)
        present = [row for row in several if not row.missing]
        ordered = sorted(present, key=_rank)
        if ordered:
            yield f"**{problem}** ({ordered[0].size})\n\n" + table(
                COLUMNS, [_cells(row, best, ours) for row in ordered]
            )


def _rank(row: Row) -> tuple[bool, bool, float, float]:
    objective = float(f"{row.objective:.8g}") if row.solved else 0.0  # equal but for rounding: the faster first
    return not row.solved, not row.feasible, objective, row.time


def _cells(row: Row, best: float, ours: float) -> list[str]:
    name = f"**{row.contender}**" if row.contender == OURS else row.contender
    if not row.solved:
        return [name, "", "", "", "", "", "", number(row.warm_up, ".1f"), "", "", row.reason]
    excess = 100 * (row.objective - best) / abs(best) if math.isfinite(best) and best else math.nan
    feasible = "yes" if row.feasible else _why_not(row)
    return [
        name, number(row.objective, ".6g"), number(excess + 0.0, ".3f"), feasible, str(row.nonzeros),
        number(row.time, ".3g"), number(row.time / ours, ".2f"), number(row.warm_up, ".1f"), number(row.peak, ".0f"),
        number(row.before, ".0f"), row.note,
    ]  # fmt: skip


def _why_not(row: Row) -> str:
    many = row.kind != "penalised" and row.nonzeros > row.k
    return "no: too many nonzeros" if many else f"no: off by {row.violation:.1e}"


def claims_table(found: Sequence[Claim]) -> str:
    """Return a table of the claims with their ratios."""
    if not found:
        return "No claim can be judged from these rows."
    judged = [claim for claim in found if claim.holds is not None]
    holding = sum(bool(claim.holds) for claim in judged)
    head = f"{holding} of {len(judged)} hold; {len(found) - len(judged)} cannot be judged."
    words = {True: "holds", False: "**does not hold**", None: "cannot be judged"}
    cells = [
        [
            f"{claim.group}, {claim.problem}",
            claim.sentence,
            number(claim.ratio, ".4g"),
            number(claim.bound, ".5g"),
            words[claim.holds],
            claim.why,
        ]
        for claim in found
    ]
    return head + "\n\n" + table(("problem", "claim", "ratio", "bound", "holds", "note"), cells)


def missing(rows: Sequence[Row]) -> str:
    """List contenders and problems that were left out, each once, with the reason."""
    found = dict.fromkeys((row.contender or f"{row.group}, {row.problem}", row.reason) for row in rows if row.missing)
    return "\n".join(f"- {name}: {reason}" for name, reason in found) or "All contenders and all data were there."


def table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with numbers aligned right."""
    lines = [list(columns), [":--" if column in LEFT else "--:" for column in columns], *cells]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


def number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else ""
