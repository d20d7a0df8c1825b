"""Cases of the fuzzer: a few plain choices, made by a chooser; everything else follows from them and the seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

QUADRATIC = (
    "LeastSquares", "LeastSquares weighted", "LeastSquares ridge", "Quadratic", "Quadratic singular", "MeanVariance",
    "MeanVariance.from_returns",
)  # fmt: skip
COMPONENTS = ("PrincipalComponent", "PrincipalComponent.from_data", "PrincipalComponent.from_factor")
GENERAL = ("Logistic", "Logistic separable", "Logistic ridge", "Huber", "Huber weighted", "Poisson", "Poisson weighted")
FREE = ("Quadratic indefinite", *COMPONENTS, "Custom convex", "Custom nonconvex")
LOSSES = (*QUADRATIC, *GENERAL, *FREE)
TABLES = ("MeanVariance.from_returns", "PrincipalComponent.from_data")  # built from a data table

POLYHEDRA = (
    "WholeSpace", "Hyperplane", "Hyperplane zero", "Hyperplane weighted", "Nonnegative", "Nonnegative some", "Box",
    "Box vectors", "Box half", "Box forced", "Box fixed", "Simplex", "BudgetBox", "BudgetBox vectors",
    "BudgetBox forced", "BudgetBox tight", "BudgetBox unbounded", "Polyhedron inequalities", "Polyhedron equations",
    "Polyhedron both", "Polyhedron cone",
)  # fmt: skip
ROUND = ("L2Ball", "NonnegativeBall", "L1Ball")
OWN = ("CustomSet box", "CustomSet ball", "CustomSet halfspace")
SETS = (*POLYHEDRA, *ROUND, *OWN)

LAYOUTS = (
    "C",
    "F",
    "view",
    "reversed",
    "readonly",
    "float32",
    "int",
    "list",
    "csr",
    "csc",
    "coo",
    "csr32",
    "operator",
    "object",
    "frame",
)
UNSEEN = ("operator", "object")  # layouts that do not show their columns
SINGLE = ("float32", "csr32")

REGIMES = (
    "plain",
    "duplicate",
    "collinear",
    "zero",
    "constant",
    "deficient",
    "columns scaled",
    "ties",
    "perfect",
    "no signal",
)
# scales of A and of b
SCALES = (
    (1.0, 1.0),
    (1e100, 1.0),
    (1e-100, 1.0),
    (1.0, 1e100),
    (1.0, 1e-100),
    (1e100, 1e100),
    (1e-100, 1e-100),
)

SHRINKING = (
    "WholeSpace", "Nonnegative", "Nonnegative some", "Box", "Box vectors", "Box half", "Box forced", "Box fixed",
    "Simplex", "L2Ball", "NonnegativeBall",
)  # fmt: skip
PAPER = ("apdca", "pdca", "pdcae", "gist", "nmapg", "iht", "l1pdca")
SLOW = ("l1dca", "mipdca")
PENALTIES = ("L1", "CappedL1", "LogSum", "SCAD", "MCP", "L1MinusL2", "TopK1", "TopK2")


class Chooser(Protocol):
    """Source of the choices: a random generator, or hypothesis, which can shrink them."""

    def pick(self, options): ...
    def integer(self, low, high): ...


@dataclass(frozen=True)
class Dice:
    """A chooser from NumPy's random generator."""

    rng: np.random.Generator

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def integer(self, low, high):
        return int(self.rng.integers(low, high + 1))


@dataclass(frozen=True)
class Case:
    """Choices of one problem."""

    seed: int
    loss: str
    set: str
    n: int
    m: int
    k: int
    layout: str = "C"
    regime: str = "plain"
    scale: tuple[float, float] = (1.0, 1.0)
    natural: bool = True  # whether the set is of the size of the data's x
    call: str = "minimize"  # or k_path, minimize_penalized
    method: str = "auto"
    penalty: str = ""
    options: tuple[str, ...] = ()
    search: bool = False  # whether few supports are searched too, instead of tried one by one

    @property
    def single(self):
        return self.layout in SINGLE

    @property
    def enumerable(self):
        return self.n <= 8


def case_number(i: int, seed: int = 0, *, small: bool = False) -> Case:
    """Return case number i of a run."""
    return choose(Dice(np.random.default_rng([seed, i])), small=small)


def chance(chooser: Chooser, percent: int) -> bool:
    return chooser.integer(0, 99) >= 100 - percent


def choose(chooser: Chooser, losses=LOSSES, sets=SETS, *, small: bool = False) -> Case:
    """Choose a case, usual choices first so that hypothesis shrinks towards them; `small` cases are cheap."""
    loss = chooser.pick(losses if chance(chooser, 60) or len(losses) < len(LOSSES) else QUADRATIC)
    C = chooser.pick(sets if loss not in COMPONENTS or len(sets) < len(SETS) else ("L2Ball",) * len(sets) + SETS)
    n = _size(chooser, loss, C, small)
    shape = chooser.pick(("usual", "usual", "usual", "usual", "m = 1", "m < k", "k = n"))
    m = chooser.integer(2, 2 * n + 3)
    k = n if shape == "k = n" else chooser.integer(1, n)
    if shape == "m = 1" and loss not in TABLES:
        m = 1
    elif shape == "m < k":
        m = min(m, max(k - 1, 2))
    case = Case(chooser.integer(0, 2**32 - 1), loss, C, n, m, k)
    case = replace(
        case, layout=_layout(chooser, case), regime=chooser.pick(REGIMES) if chance(chooser, 70) else "plain"
    )
    if (
        chance(chooser, 15)
        and not case.single
        and case.layout != "int"
        and not loss.startswith("Custom")
        and C not in OWN
    ):
        case = replace(case, scale=chooser.pick(SCALES[1:]), natural=not chance(chooser, 25))
    case = _how(chooser, replace(case, search=chance(chooser, 40)))
    return (
        _special(chooser, case)
        if chance(chooser, 20) and len(losses) == len(LOSSES) and len(sets) == len(SETS)
        else case
    )


def _special(chooser, case):
    """Return a case of a kind that the other choices never make; all of them are small enough for the twin."""
    kind = chooser.pick(("groups", "saturated", "near_optimal", "minimize_many", "floor at a value", "interrupt"))
    n = chooser.integer(2, 6)
    case = replace(
        case, n=n, m=chooser.integer(1, 2 * n + 3), k=chooser.integer(1, n), layout="C", scale=(1.0, 1.0), natural=True,
        call="minimize", method="auto", penalty="", options=(), loss=chooser.pick(QUADRATIC[:4]),
        set=chooser.pick(POLYHEDRA),
    )  # fmt: skip
    if kind == "groups":
        return replace(
            case,
            options=tuple(sorted({"groups", *(name for name in ("forced_in", "forced_out") if chance(chooser, 60))})),
        )
    if kind == "saturated":
        return replace(
            case,
            loss=chooser.pick(("Quantile", "Quantile saturated", "Huber saturated")),
            regime=chooser.pick(REGIMES[:5]),
        )
    if kind == "near_optimal":
        options = tuple(
            name for name in ("forced_in", "forced_out", "interrupt") if chance(chooser, (60, 30, 15)[len(name) % 3])
        )
        return replace(case, call="near_optimal", options=options, regime=chooser.pick(REGIMES))
    if kind == "minimize_many":
        loss = chooser.pick(QUADRATIC[:3])
        return replace(
            case,
            call="minimize_many",
            loss=loss,
            set=chooser.pick(("WholeSpace", "Nonnegative", "Nonnegative some", "Box")),
            regime="collinear" if chance(chooser, 50) else case.regime,
        )
    if kind == "floor at a value":
        return replace(
            case,
            set=chooser.pick(("Box", "Box vectors", "BudgetBox", "Nonnegative", "WholeSpace")),
            options=("floor at a value",),
        )
    return replace(case, options=("interrupt",), loss=chooser.pick(LOSSES), set=chooser.pick(SETS), m=case.m + 1)


def _size(chooser, loss, C, small):
    """Choose n: small enough for the twin in most cases, sometimes 1."""
    if chance(chooser, 4):
        return 1
    costly = loss not in QUADRATIC or C == "NonnegativeBall"
    if chance(chooser, 4 if small else 14):
        return chooser.integer(9, (10 if costly else 16) if small else (20 if costly else 60))
    return chooser.integer(2, (4 if small else 6) if costly else (6 if small else 8))


def _layout(chooser, case):
    if chance(chooser, 40) or case.loss.startswith("Custom"):
        return "C"
    return chooser.pick([layout for layout in LAYOUTS if case.loss not in TABLES or layout not in UNSEEN])


def _how(chooser, case):
    """Choose the method and the options."""
    what = chooser.integer(0, 99)
    if what >= 94:
        return replace(case, call="k_path")
    if what >= 90:
        case = replace(case, call="minimize_penalized", method=chooser.pick(PAPER[:5]), penalty=chooser.pick(PENALTIES))
        return _fitting(chooser, case, ("WholeSpace",) if case.method in ("gist", "nmapg") else SHRINKING)
    if what >= 81:
        case = replace(case, method=chooser.pick(PAPER))
        fitting = {"gist": ("WholeSpace",), "nmapg": ("WholeSpace",), "iht": SHRINKING, "l1pdca": SHRINKING}
        return _fitting(chooser, case, fitting.get(case.method, SETS))
    if what >= 80 and case.n <= 8:
        return replace(case, method=chooser.pick(SLOW))
    if chance(chooser, 65):
        return case
    names = ["forced_in", "forced_out", "x0", "random_state", "effort", "max_iter", "max_time", "callback"]
    if case.loss in QUADRATIC and case.set in POLYHEDRA and case.n <= 6:
        names += ["min_nonzero"] * 3
    count = chooser.integer(1, 2)
    return replace(case, options=tuple(sorted({chooser.pick(names) for _ in range(count)})))


def _fitting(chooser, case, sets):
    """Move the case, most of the time, to a set that its method supports."""
    return case if case.set in sets or chance(chooser, 15) else replace(case, set=chooser.pick(sets))
