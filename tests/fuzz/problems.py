"""Problem of a case: the text that runs, φ and C for the judge, and the requirements of the options."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .case import POLYHEDRA, QUADRATIC, Case
from .layouts import header, literal
from .losses import build_loss
from .penalties import build_penalty
from .region import Region
from .sets import _unit, build_set
from .twin import Twin

GAPPED, GAPS = 3, (1e-9, 0.05)  # one problem in so many is to be proved, to within one of these
EARLY = ("max_iter", "max_time", "callback", "interrupt")  # options that end a run before it is done


@dataclass(frozen=True)
class Problem:
    """Problem made from a case."""

    case: Case
    setup: str  # the text that makes loss and C
    call: str  # the text that makes `result`
    phi: object
    region: Region
    penalty: object = None
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    floor: float = 0.0
    groups: tuple[int, ...] = ()
    x0: np.ndarray | None = None
    ks: tuple[int, ...] = ()

    @property
    def source(self):
        body = self.setup + "\n" + self.call
        return header(body) + body

    @property
    def early(self):
        return any(name in EARLY for name in self.case.options)

    @property
    def may_refuse(self):
        """Whether a MissingPieceError is correct: the method needs what the loss or set lacks."""
        if self.case.method != "auto":
            return True
        rounded = self.case.layout in ("float32", "csr32")  # a covariance that is all rounding is not convex
        return self.floor > 0 and (rounded or not (self.case.loss in QUADRATIC and self.case.set in POLYHEDRA))

    def twin(self, k=None):
        floor = self.floor * (1.0 - 1e-12)  # a floor one rounding above a bound counts as met at the bound
        return Twin(self.phi, self.region, k or self.case.k, self.forced_in, self.forced_out, floor, self.groups)


WITHIN = 0.3  # of near_optimal
# options whose name differs from the argument
KEYWORDS = {"interrupt": "callback", "floor at a value": "min_nonzero"}
NO_ENUMERATION = "ks.SearchSettings(enumerated=0)"


def build(case: Case) -> Problem:
    """Return the problem of a case; equal cases give equal problems."""
    rng = np.random.default_rng(case.seed)
    loss_lines, phi = build_loss(case, rng)
    set_lines, region = build_set(case, rng)
    extra, lines, penalty = {}, [*loss_lines, *set_lines], None
    arguments = []
    # without enumeration: the claims of the search are tested
    searching = f", settings={NO_ENUMERATION}" if case.search else ""
    for name in case.options:
        text, facts = _floor_at_a_value(case, phi, region) if name == "floor at a value" else _option(name, case)
        arguments.append(f"{KEYWORDS.get(name, name)}={text}")
        extra |= facts
    if case.method != "auto":
        arguments.append(f"method={case.method!r}")
    elif (
        case.seed % GAPPED == 0 and case.call != "minimize_penalized"
    ):  # no option of a case: older seeds stay the same problems
        searching += f", gap={GAPS[case.seed % len(GAPS)]!r}, max_nodes=200"
    if case.call == "minimize_penalized":
        text, penalty = build_penalty(case, rng)
        call = f"result = ks.minimize_penalized(loss, {text}, C=C, method={case.method!r}, max_iter=300)"
    elif case.call == "near_optimal":
        given = "".join(", " + text for text in arguments)
        call = f"result = ks.near_optimal(loss, {case.k}, C, within={WITHIN}, max_time=20.0{given})"
    elif case.call == "minimize_many":
        more = ", sample_weight=w" * ("weighted" in case.loss) + _ridge_argument(loss_lines)
        call = f"result = ks.minimize_many(A, B, {case.k}, C{more})"
    elif case.call == "k_path":
        extra["ks"] = tuple(sorted({*rng.integers(1, case.k + 1, 3).tolist(), case.k}))
        call = f"result = ks.k_path(loss, {list(extra['ks'])}, C{searching})"
    else:
        if case.method != "auto":
            arguments.append(f"max_iter=300, rho={[0.01, 1.0]}")
        given = "".join(", " + text for text in arguments) + (searching if case.method == "auto" else "")
        call = f"result = ks.minimize(loss, {case.k}, C{given})"
    if "callback" in case.options:
        lines += ["def stop(x):", "    raise StopIteration"]
    if "interrupt" in case.options:
        when = int(np.random.default_rng([case.seed, 7]).integers(1, 6))
        lines += [
            f"calls, WHEN = iter(range(1, 10**6)), {when}",
            "def interrupt(x):",
            "    if next(calls) == WHEN: raise KeyboardInterrupt",
        ]
    return Problem(case, "\n".join(lines), call, phi, region, penalty, **extra)


def _ridge_argument(loss_lines):
    """Return the ridge as it was given to the loss."""
    _, found, rest = loss_lines[-1].rstrip(")").partition("ridge=")
    return f", ridge={rest}" if found else ""


def _floor_at_a_value(case, phi, region):
    """Return a minimum size equal to a bound or to an optimal entry, next to it in floating point, or out of reach."""
    rng = np.random.default_rng([case.seed, 8])
    sides = np.abs(np.concatenate([region.lower, region.upper]))
    values = set(sides[np.isfinite(sides) & (sides > 0)].tolist())
    best, _ = Twin(phi, region, case.k).best()
    if best is not None and best.x is not None:
        values |= set(np.abs(best.x[best.x != 0]).tolist())
    value = float(rng.choice(sorted(values))) if values else 1.0
    floor = float(rng.choice([value, np.nextafter(value, 0.0), np.nextafter(value, np.inf), 1.3 * value]))
    return repr(floor), {"floor": floor}


def _option(name, case):
    """Return the text of an option and its value for the judge, from a generator of its own."""
    n, k, rng = case.n, case.k, np.random.default_rng([case.seed, *name.encode()])
    if name == "forced_in":
        chosen = sorted(rng.permutation(n)[: int(rng.integers(1, min(k, 2) + 1))].tolist())
        return str(chosen), {"forced_in": tuple(chosen)}
    if name == "forced_out":
        inside = () if "forced_in" not in case.options else _option("forced_in", case)[1]["forced_in"]
        chosen = sorted(set(rng.permutation(n)[: int(rng.integers(1, 3))].tolist()) - set(inside))
        return str(chosen), {"forced_out": tuple(chosen)}
    if name == "x0":
        x0 = rng.standard_normal(n) * _unit(case)
        return literal(x0), {"x0": x0}
    if name == "min_nonzero":
        floor = float(rng.choice([1e-3, 0.1, 0.4]) * _unit(case))
        return repr(floor), {"floor": floor}
    if name == "groups":
        labels = rng.permutation([*range(k), *rng.integers(0, k + 1, n - k)]).tolist()  # at least k groups
        return str(labels), {"groups": tuple(labels)}
    if name == "max_time":
        return str(rng.choice(["0.0", "0.001"])), {}
    return {"random_state": str(int(rng.integers(1000))), "effort": str(int(rng.choice([0, 1, 2]))), "max_iter": "1",
            "callback": "stop", "interrupt": "interrupt"}[name], {}  # fmt: skip
