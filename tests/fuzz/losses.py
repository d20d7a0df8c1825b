"""Losses of the fuzzer: the text, and φ by its formula from the same numbers."""

from __future__ import annotations

import numpy as np

from .layouts import as_given, literal, matrix_lines, vector_lines
from .phi import Fit, Form, Smooth, wide
from .regimes import form, table, target


def build_loss(case, rng):
    """Return the lines that make `loss`, and φ."""
    if case.loss.startswith("Custom"):
        return _custom(case, rng)
    kind = case.loss.split()[0]
    if kind in ("LeastSquares", "Logistic", "Huber", "Poisson", "Quantile"):
        return _fit(case, rng, kind)
    if kind in ("MeanVariance.from_returns", "PrincipalComponent.from_data", "PrincipalComponent.from_factor"):
        return _from_table(case, rng, kind)
    return _form(case, rng, kind)


def precision(case):
    return "float32" if case.single else "float64"


def _fit(case, rng, kind):
    A = table(case, rng)
    b = _labels(case, rng, kind, A)
    if "saturated" in case.loss:  # residuals far beyond the kink, where the curvature of a term vanishes
        A, b = A * 10.0 ** rng.uniform(0, 2.5), b * 10.0 ** rng.uniform(0, 2.5)
    lines = matrix_lines("A", A, case.layout) + vector_lines("b", b, case.layout)
    if case.call == "minimize_many":
        lines.append(f"B = np.column_stack([b, {literal(rng.standard_normal(case.m))}, b[::-1] - 1.0])")
    weight, ridge, delta, more = np.ones(case.m), np.zeros(case.n), 1.0, []
    if kind == "Huber":
        delta = float(rng.choice([0.1, 0.7, 3.0]) * case.scale[1])
        more.append(f"delta={delta!r}")
    tau = 0.5
    if kind == "Quantile":
        tau, delta = float(rng.choice([0.1, 0.5, 0.9])), float(rng.choice([0.01, 0.3, 1.0]))
        more += [f"tau={tau!r}", f"width={delta!r}"]
    if "weighted" in case.loss:
        weight = as_given(rng.uniform(0, 3, case.m) * (rng.uniform(size=case.m) < 0.8), case.layout)
        weight[0] = 1.0
        lines += vector_lines("w", weight, case.layout)
        more.append("sample_weight=w")
    if "ridge" in case.loss:
        level = float(rng.choice([1e-3, 0.5])) * case.scale[0] ** 2
        if rng.uniform() < 0.5:
            ridge = as_given(level * np.arange(case.n), "float32" if case.single else "C")
            lines += vector_lines("rho", ridge, "C")
            more.append("ridge=rho")
        else:
            ridge = as_given(np.full(case.n, level), "float32" if case.single else "C")
            more.append(f"ridge={level!r}")
    lines.append(f"loss = ks.{kind}(A, b{''.join(', ' + text for text in more)})")
    signed = np.where(b <= 0, -1.0, 1.0) if kind == "Logistic" else b
    name = {"LeastSquares": "squares"}.get(kind, kind.lower())
    return lines, Fit(name, A, signed, weight, ridge, delta, precision=precision(case), tau=tau)


def _labels(case, rng, kind, A):
    """Return b, labels or counts."""
    if kind in ("LeastSquares", "Huber", "Quantile"):
        return target(case, rng, A)
    t = (A / case.scale[0]) @ rng.standard_normal(case.n)
    t = t / max(1.0, float(np.abs(t).max()))
    if kind == "Poisson":
        return np.zeros(case.m) if case.regime == "no signal" else rng.poisson(np.exp(2 * t)).astype(float)
    plus = (
        t > 0
        if "separable" in case.loss or case.regime == "perfect"
        else rng.uniform(size=case.m) < 1 / (1 + np.exp(-3 * t))
    )
    return np.where(plus, 1.0, rng.choice([0.0, -1.0]))


def _form(case, rng, kind):
    """Return a loss given by a symmetric matrix."""
    indefinite = case.loss == "Quadratic indefinite"
    Q = form(case, rng, indefinite)
    drawn = rng.standard_normal(case.n)
    c = as_given((drawn if case.layout != "int" else np.rint(4 * drawn)) * case.scale[1], case.layout)
    # c in the range of Q: bounded below for any rank
    if case.loss == "Quadratic singular" or case.regime == "perfect":
        c = as_given(Q @ np.rint(2 * rng.standard_normal(case.n)) * (case.scale[1] / case.scale[0]), case.layout)
    if case.regime == "no signal":
        c = np.zeros(case.n)
    lines = matrix_lines("Q", Q, case.layout)
    if kind == "PrincipalComponent":
        return [*lines, "loss = ks.PrincipalComponent(Q)"], Form(
            -2.0 * Q, np.zeros(case.n), convex=False, precision=precision(case)
        )
    lines += vector_lines("c", c, case.layout)
    if kind == "MeanVariance":
        alpha = float(rng.choice([0.5, 1.0, 30.0]))
        return [*lines, f"loss = ks.MeanVariance(Q, c, {alpha!r})"], Form(
            2.0 * alpha * Q, -c, precision=precision(case)
        )
    return [*lines, "loss = ks.Quadratic(Q, c)"], Form(Q, c, convex=not indefinite, precision=precision(case))


def _from_table(case, rng, kind):
    """Return a loss given by a data table; its covariance is never formed."""
    X = table(case, rng)
    lines = matrix_lines("X", X, case.layout)
    if kind == "PrincipalComponent.from_factor":
        return [*lines, "loss = ks.PrincipalComponent.from_factor(X)"], _negative(np.sqrt(2.0) * X, case)
    mean = wide(X).mean(axis=0)
    Z = np.where(np.ptp(X, axis=0) > 0, wide(X) - mean, wide(0.0))
    if kind == "MeanVariance.from_returns":
        alpha = float(rng.choice([0.5, 1.0, 30.0]))
        Z = np.sqrt(wide(2.0 * alpha / (case.m - 1))) * Z
        phi = Form(None, -np.asarray(mean, float), Z=np.asarray(Z, float), precision=precision(case))
        return [*lines, f"loss = ks.MeanVariance.from_returns(X, {alpha!r})"], phi
    scale = bool(rng.uniform() < 0.5)
    size = np.sqrt((Z * Z).sum(axis=0)) if scale else np.full(case.n, np.sqrt(wide(case.m - 1)))
    Z = np.sqrt(wide(2.0)) * Z / np.where(size > 0, size, 1.0)
    return [*lines, f"loss = ks.PrincipalComponent.from_data(X, scale={scale})"], _negative(Z, case)


def _negative(Z, case):
    return Form(None, np.zeros(case.n), Z=np.asarray(Z, float), sign=-1.0, convex=False, precision=precision(case))


def _custom(case, rng):
    """Return user functions: a sum of log cosh without overflow, or of double wells."""
    n, c = case.n, rng.standard_normal(case.n)
    lines = vector_lines("c", c, "C")
    told = f", n={n}"
    if case.loss == "Custom convex":
        told += str(rng.choice(["", ", convex=True"]))
        lines.append(
            f"loss = ks.Custom(lambda x: float(np.logaddexp(x - c, c - x).sum()), lambda x: np.tanh(x - c){told})"
        )
        return lines, Smooth(
            n,
            lambda x: np.logaddexp(x - c, c - x).sum(),
            lambda x: np.tanh(x - c),
            lambda x: np.diag(1.0 - np.tanh(x - c) ** 2),
            True,
        )
    lines.append(
        "loss = ks.Custom(lambda x: float(((x**2 - 1)**2).sum() / 4 + c @ x), "
        f"lambda x: x**3 - x + c{told}, convex=False)"
    )
    return lines, Smooth(
        n, lambda x: ((x**2 - 1) ** 2).sum() / 4 + c @ x, lambda x: x**3 - x + c, lambda x: np.diag(3 * x**2 - 1),
        False, size=lambda x: ((x**2 + 1) ** 2).sum() + np.abs(c) @ np.abs(x),
    )  # fmt: skip
