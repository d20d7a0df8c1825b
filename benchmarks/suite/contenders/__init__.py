"""All contenders, a file per library. Listing them imports none of the libraries."""

from __future__ import annotations

from importlib import import_module

from suite.contenders.base import Answer, Contender
from suite.contenders.ours import OURS, PROOF

MODULES = ("ours", "paper", "abess_", "skscope_", "sklearn_", "skglm_", "el0ps_", "scip", "skfolio_", "cvxpy_")


def contenders() -> list[Contender]:
    """Return every contender, ours first."""
    return [contender for module in MODULES for contender in import_module(f"suite.contenders.{module}").CONTENDERS]


def find(module: str, name: str, kind: str) -> Contender:
    """Return the contender of that name for that kind in a module's CONTENDERS."""
    return next(one for one in import_module(module).CONTENDERS if one.name == name and kind in one.kinds)


__all__ = ["OURS", "PROOF", "Answer", "Contender", "contenders", "find"]
