"""Sets of the fuzzer: the text, and C by its definition from the same numbers."""

from __future__ import annotations

import numpy as np

from .layouts import literal
from .region import Region


def build_set(case, rng):
    """Return the lines that make `C`, and the region."""
    unit = _unit(case)
    name, _, variant = case.set.partition(" ")
    if name == "Simplex" and case.loss.startswith("Poisson"):
        unit *= 0.01  # exp(1000) is out of range
    return BUILDERS[name](case.n, case.k, variant, unit, rng)


def _unit(case):
    """Return the size of x that suits the data, or 1."""
    if not case.natural or case.loss.startswith("PrincipalComponent"):
        return 1.0
    a, b = case.scale
    return 1.0 / a if case.loss.split()[0] in ("Logistic", "Poisson") else 1.0 if "from_returns" in case.loss else b / a


def _number(value):
    return repr(float(value))


def _whole(n, k, variant, unit, rng):
    return ["C = ks.WholeSpace()"], Region.of(n)


def _ball(name, **sides):
    def build(n, k, variant, unit, rng):
        radius = float(rng.choice([0.1, 0.7, 1.0, 3.0, 100.0]) * unit)
        field = "diamond" if name == "L1Ball" else "ball"
        return [f"C = ks.{name}({_number(radius)})"], Region.of(n, **sides, **{field: radius})

    return build


def _hyperplane(n, k, variant, unit, rng):
    b = float(rng.choice([1.0, -2.0, 0.3]) * unit)
    if variant == "zero":
        b = 0.0
    if variant == "weighted":
        a = np.where(rng.uniform(size=n) < 0.3, 0.0, rng.standard_normal(n))
        a[int(rng.integers(n))] = 2.0
        return [f"C = ks.Hyperplane({literal(a)}, {_number(b)})"], Region.of(n, E=a, f=b)
    return [f"C = ks.Hyperplane(b={_number(b)})"], Region.of(n, E=np.ones(n), f=b)


def _nonnegative(n, k, variant, unit, rng):
    if not variant:
        return ["C = ks.Nonnegative()"], Region.of(n, lower=0.0)
    chosen = np.flatnonzero(rng.uniform(size=n) < 0.5)
    return [f"C = ks.Nonnegative({chosen.tolist()})"], Region.of(
        n, lower=np.where(np.isin(np.arange(n), chosen), 0.0, -np.inf)
    )


def _bounds(n, variant, unit, rng):
    """Return lower and upper bounds of a variant."""
    low, high = -rng.uniform(0, 1.5, n), rng.uniform(0, 1.5, n)
    if variant == "half":
        low[rng.uniform(size=n) < 0.5] = -np.inf
        high[rng.uniform(size=n) < 0.5] = np.inf
    if variant in ("forced", "fixed"):
        chosen = rng.choice(n, size=min(n, int(rng.integers(1, 3))), replace=False)
        low[chosen] = rng.choice([0.2, -1.0], len(chosen))
        high[chosen] = low[chosen] + (0.0 if variant == "fixed" else 0.5)
        if variant == "fixed":
            low[chosen[0]] = high[chosen[0]] = 0.0
    low[rng.uniform(size=n) < 0.15] = 0.0 if variant != "forced" else -0.0
    swap = low > high
    low[swap] = high[swap] - 0.1
    return low * unit, high * unit


def _box(n, k, variant, unit, rng):
    if not variant:
        low, high = -float(rng.choice([0.0, 0.5, 2.0])) * unit, float(rng.choice([0.3, 1.0])) * unit
        return [f"C = ks.Box({_number(low)}, {_number(high)})"], Region.of(n, low, high)
    low, high = _bounds(n, variant, unit, rng)
    return [f"C = ks.Box({literal(low)}, {literal(high)})"], Region.of(n, low, high)


def _simplex(n, k, variant, unit, rng):
    total = float(10.0 ** rng.integers(-3, 4) * unit)
    return [f"C = ks.Simplex({_number(total)})"], Region.of(n, 0.0, E=np.ones(n), f=total)


def _budget_box(n, k, variant, unit, rng):
    if not variant or variant == "unbounded":
        total, high = float(unit), np.inf if variant else float(max(0.9, 1.1 / k) * unit)
        text = "np.inf" if variant else _number(high)
        return [f"C = ks.BudgetBox({_number(total)}, 0.0, {text})"], Region.of(n, 0.0, high, E=np.ones(n), f=total)
    low, high = _bounds(n, variant, unit, rng)
    inside = np.sort(rng.choice(n, size=min(k, n), replace=False))
    share = 1.0 if variant == "tight" else float(rng.uniform(0.1, 0.9))
    must = (low > 0) | (high < 0)
    member = np.isin(np.arange(n), inside) | must
    total = float(np.where(member, low + share * (high - low), 0.0).sum())
    if variant == "tight":
        total = float(np.sort(high)[-k:].sum())
    text = f"C = ks.BudgetBox({_number(total)}, {literal(low)}, {literal(high)})"
    return [text], Region.of(n, low, high, E=np.ones(n), f=total)


def _polyhedron(n, k, variant, unit, rng):
    """Return rows that some sparse point satisfies, with rare exceptions."""
    p = int(rng.integers(1, 4))
    inner = np.zeros(n)
    chosen = rng.choice(n, size=min(k, n), replace=False)
    inner[chosen] = rng.standard_normal(len(chosen))
    if rng.uniform() < 0.1:
        inner = rng.standard_normal(n)
    G = rng.standard_normal((p, n)) * np.where(rng.uniform(size=(p, n)) < 0.2, 0.0, 1.0)
    h = G @ inner + rng.choice([0.0, 0.5], p)
    E = rng.standard_normal((1, n)) if rng.uniform() < 0.7 else np.ones((1, n))
    f = E @ inner
    low, high = -np.inf, np.inf
    if rng.uniform() < 0.5:
        low, high = np.minimum(inner, 0) - 0.5, np.maximum(inner, 0) + 0.5
    if variant == "cone":
        h = np.zeros(p)
    if variant in ("inequalities", "cone"):
        E = f = None
    if variant == "equations":
        G = h = None
    h, f, low, high = (None if part is None else part * unit for part in (h, f, low, high))
    bounds = "" if np.ndim(low) == 0 else f", lower={literal(low)}, upper={literal(high)}"
    parts = ", ".join("None" if part is None else literal(part) for part in (G, h, E, f))
    return [f"C = ks.Polyhedron({parts}{bounds})"], Region.of(n, low, high, G, h, E, f)


def _custom_set(n, k, variant, unit, rng):
    """Return a user-defined projection: onto a box, a ball or a halfspace."""
    if variant == "box":
        low, high = _bounds(n, "vectors", 1.0, rng)
        lines = [f"low, high = {literal(low)}, {literal(high)}"]
        lines.append(
            "C = ks.CustomSet(lambda u: np.clip(u, low, high), "
            f"lambda x: np.abs(x - np.clip(x, low, high)).max(), n={n})"
        )
        return lines, Region.of(n, low, high)
    if variant == "ball":
        text = "lambda u: u / max(1.0, np.linalg.norm(u)), lambda x: max(0.0, np.linalg.norm(x) - 1.0)"
        return [f"C = ks.CustomSet({text}, n={n})"], Region.of(n, ball=1.0)
    a, b = rng.standard_normal(n), float(rng.choice([0.5, -0.5]))
    a[int(rng.integers(n))] = 1.0
    lines = [f"a = {literal(a)}"]
    lines.append(
        f"C = ks.CustomSet(lambda u: u - max(0.0, a @ u - {b}) / (a @ a) * a, "
        f"lambda x: max(0.0, a @ x - {b}) / np.linalg.norm(a), n={n})"
    )
    return lines, Region.of(n, G=a, h=b)


BUILDERS = {
    "WholeSpace": _whole, "L2Ball": _ball("L2Ball"), "NonnegativeBall": _ball("NonnegativeBall", lower=0.0),
    "L1Ball": _ball("L1Ball"), "Hyperplane": _hyperplane, "Nonnegative": _nonnegative, "Box": _box, "Simplex": _simplex,
    "BudgetBox": _budget_box, "Polyhedron": _polyhedron, "CustomSet": _custom_set,
}  # fmt: skip
