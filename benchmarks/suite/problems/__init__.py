"""Catalogue of problems: groups of named problems, each built on request so that a child process can rebuild it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suite.contenders.base import BUDGETS
from suite.problem import KINDS, Problem, tiny
from suite.problems import constrained, real, regression

Builders = dict[str, Callable[[], Problem]]


@dataclass(frozen=True)
class Group:
    """Problems that share a table."""

    name: str
    title: str
    builders: Callable[[bool], Builders]  # of the full, or of the quick sizes
    contenders: tuple[str, ...] = ()  # only these; all that can if empty


def _tiny(quick: bool) -> Builders:
    return {kind: lambda kind=kind: tiny(kind) for kind in KINDS}


def _gaps(quick: bool) -> Builders:
    return constrained.gap_builders(quick) | regression.gap_builders(quick) | real.component_gap_builders(quick)


ABESSES = ("abess", "abess, wide search")
KNOB = ("ksparse", "ksparse, effort 16", "ksparse, effort 100")
TIMED = (
    "ksparse",
    *(f"{name}, {seconds:g} s" for seconds in BUDGETS for name in ("ksparse", *ABESSES, "skscope Scope")),
)
GROUPS = {
    group.name: group
    for group in (
        Group("table2", "Table 2: ½‖Ax − b‖² + λ(‖x‖₁ − ‖x‖₂)", regression.table2_builders),
        Group(
            "table5",
            "Table 5: least squares, correlated columns, dense truth, with and without signs",
            regression.table5_builders,
        ),
        Group(
            "table5_others",
            "Table 5 on other seeds",
            regression.other_seeds_builders,
            ("ksparse", "skscope Scope", *ABESSES),
        ),
        Group(
            "best_subset",
            "Best subset with a planted support, signs free or all nonnegative",
            regression.best_subset_builders,
        ),
        Group("sparse_pca", "Sparse principal component of a correlation matrix", real.component_builders),
        Group("portfolios", "Least variance, long only, at most 10 assets", real.portfolio_builders),
        Group(
            "rows", "Least variance with a return to be reached, without and above a floor", constrained.row_builders
        ),
        Group("caps", "Least variance under sector caps, or with buy-ins", constrained.cap_builders),
        Group(
            "proofs",
            "Proved to 0.01 %: OR-Library, and buy-ins",
            constrained.proof_builders,
            ("ksparse, proof", "SCIP", "SCIP, perspective"),
        ),
        Group(
            "gaps",
            "The gap after a minute: larger markets, regression, components",
            _gaps,
            ("ksparse, gap", "SCIP, perspective", "El0ps"),
        ),
        Group("logistic", "Logistic regression with a planted support", regression.logistic_builders),
        Group("knob", "What effort buys: Table 5 on other seeds, gene-like classes", regression.knob_builders, KNOB),
        Group("effort", "Objective against time, each given the same", regression.effort_builders, TIMED),
        Group("sparse_csr", "Least squares with a sparse matrix and a planted support", regression.csr_builders),
        Group("tiny", "Tiny problems of every kind", _tiny),
    )
}
ALL = tuple(name for name in GROUPS if name != "tiny")


def names(group: str, quick: bool = False) -> list[str]:
    """Return the names of the problems of a group."""
    return list(GROUPS[group].builders(quick))


def build(group: str, name: str, quick: bool = False) -> Problem:
    """Build one problem; raise `MissingDataError` without its data, `ImportError` without its library."""
    return GROUPS[group].builders(quick)[name]()
