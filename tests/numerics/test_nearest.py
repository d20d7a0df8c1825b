"""The compiled y-step of the relaxation against the array version, and under limits against bisection."""

import numpy as np
import pytest

from conftest import sweep
from ksparse.numerics import relaxation
from ksparse.numerics.constraints import Linear
from ksparse.numerics.relaxation import MAX_SIGMA_RATIO, GroupLimits, MagnitudeRange, Perspective
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT


def limited(rng, n, groups):
    """Return limits on labels of variables, or of groups of them."""
    member = np.unique(rng.integers(0, max(1, n // 2), n), return_inverse=True)[1] if groups else np.arange(n)
    label = np.unique(rng.integers(0, 4, member.max() + 1), return_inverse=True)[1]
    least = rng.integers(0, 2, label.max() + 1)
    k = int(rng.integers(least.sum() + 1, least.sum() + label.size + 2))
    return GroupLimits(k, label, least, least + rng.integers(1, 4, least.size), member)


def drawn(rng, n, k, count=40, limits=None):
    """Return a relaxation with bounds and minimum sizes of every kind, nodes with every state, and points v."""
    Z = rng.standard_normal((2 * n, n))
    H = np.corrcoef(Z.T)
    d = 0.02 * np.abs(rng.standard_normal(n)) * (rng.random(n) < 0.8)
    floor = 0.05 * (rng.random(n) < 0.5)
    low = np.where(rng.random(n) < 0.3, -np.inf, -rng.random(n)) if rng.integers(0, 2) else np.zeros(n)
    low = np.where(low < 0, np.minimum(low, -floor - 0.01), low)
    high = np.maximum(np.where(rng.random(n) < 0.3, np.inf, rng.random(n)), floor + 0.01)
    linear = Linear.of(n, lower=low, upper=high, E=np.ones((1, n)), f=np.array([0.5]))
    method = Perspective(
        H, rng.standard_normal(n), d, linear, MagnitudeRange.between(low, high, floor), k, limits=limits
    )
    state = rng.choice([FREE, IN, OUT], p=[0.7, 0.1, 0.2], size=(count, n))
    for row in state:
        row[np.flatnonzero(row == IN)[k:]] = FREE
    if limits is not None and not limits.single:  # groups are fixed as a whole
        state = state[:, np.unique(limits.member, return_index=True)[1]][:, limits.member]
    if limits is not None:  # at most one member of a label is in
        for row in state:
            for label in range(limits.min_count.size):
                inside = np.flatnonzero((row == IN) & (limits.label[limits.member] == label))
                row[inside[limits.member[inside] != limits.member[inside[:1]]]] = FREE
    nodes = method.start(state)
    nodes.sigma = np.abs(rng.standard_normal(nodes.sigma.shape))
    nodes.max_above = nodes.max_above * rng.uniform(0.9, 1.0, nodes.max_above.shape)  # every node has bounds of its own
    return method, rng.standard_normal((count, n)), nodes


def y_step_by_bisection(method, v, nodes):
    """Return y and z under limits: z of a member solves h(z) = ν, and σ = ν^−½ solves Σz = room, both by bisection."""
    limits, weight, d, near, size = method.limits, method.weight, method.d, method.sizes.min_abs, np.abs(v)
    far = np.where(v >= 0, nodes.max_above, nodes.max_below)
    state = limits.states(nodes.state)
    open_ = (nodes.state == FREE) & (far > 0) & (state == FREE)[:, limits.member]

    def sizes(z):
        with np.errstate(divide="ignore", invalid="ignore"):
            loose = np.where(size > 0, weight * size / (weight * z + d), 0.0)
        return np.clip(loose, near, np.maximum(far, near)), loose

    def h(share):
        z = share[:, limits.member]
        s, loose = sizes(z)
        with np.errstate(invalid="ignore"):
            parts = np.where(
                s == loose, np.where(d > 0, 0.5 * d * s * s, 0.0), weight * s * (size - s * z) - 0.5 * d * s * s
            )
        return limits.sums(np.where(open_, np.nan_to_num(parts), 0.0))

    ends = [h(np.full(state.shape, end)) for end in (0.0, 1.0)]

    def shares(sigma):
        nu, low, high = sigma**-2.0, np.zeros(state.shape), np.ones(state.shape)
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = h(middle) > nu
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(ends[0] <= nu, 0.0, np.where(ends[1] >= nu, 1.0, low))

    def sigma_of(members, room, within=(0.0, np.inf)):
        """Return σ at which the free members fill the room; the largest if all fit."""
        usable = members & (state == FREE)
        bottom = 1.0 / np.sqrt(np.clip(np.where(usable, ends[0], 0.0).max(axis=1), 1e-300, 1e200))
        low, high = bottom, MAX_SIGMA_RATIO * bottom
        for _ in range(50):
            middle = np.sqrt(low) * np.sqrt(high)
            fits = np.where(usable, shares(np.clip(middle[:, None], *within)), 0.0).sum(axis=1) <= room
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return high

    taken, n_free = limits.counts(state == IN), limits.counts(state == FREE)
    lowest, highest = np.zeros(state.shape), np.full(state.shape, np.inf)
    for label in range(limits.min_count.size):
        of = limits.label == label
        most, least = (bound[label] - taken[:, label] for bound in (limits.max_count, limits.min_count))
        full, short = n_free[:, label] > most, least > 0
        highest[np.ix_(full, of)] = sigma_of(of, most)[full, None]
        lowest[np.ix_(short, of)] = sigma_of(of, least)[short, None]
    within = lowest, highest
    share = shares(np.clip(sigma_of(np.full(of.shape, True), limits.k - taken.sum(axis=1), within)[:, None], *within))
    z = np.where(state == FREE, share, state == IN)[:, limits.member]
    y = z * np.where(open_ & (z > 0), sizes(z)[0], 0.0)
    whole = np.clip(weight * size / (weight + d), near, np.maximum(far, near))
    y = np.where(nodes.state == IN, whole, y) * np.where(v >= 0, 1.0, -1.0)
    wrong = (far <= 0) & (nodes.state == IN)
    return np.where(wrong, np.where(nodes.max_above > 0, near, -near), y), np.where(nodes.state == OUT, 0.0, z)


@pytest.mark.parametrize("kind", ["no limits", "labels", "groups"])
@pytest.mark.parametrize("seed", sweep(range(12), 4))
def test_compiled_y_step_agrees_with_arrays(seed, kind, monkeypatch):
    monkeypatch.setattr(relaxation, "NEWTON", 100)  # to convergence
    monkeypatch.setattr(relaxation, "NEWTON_GROUP", 100)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    limits = None if kind == "no limits" else limited(rng, n, kind == "groups")
    method, v, nodes = drawn(rng, n, int(rng.integers(1, n + 1)), limits=limits)
    given = v.copy(), nodes.state.copy(), nodes.sigma.copy()
    y, z = method._y_step(v, nodes)[:2] if limits is None else y_step_by_bisection(method, v, nodes)
    y2, z2, _ = method._y_step_compiled(v, nodes)
    np.testing.assert_allclose(z2, z, atol=1e-4)
    seen = (z > 1e-6) | (method.d > 0)  # if d = 0, y is arbitrary where z is nearly 0
    np.testing.assert_allclose(y2[seen], y[seen], atol=5e-3)
    for array, before in zip((v, nodes.state, nodes.sigma), given, strict=True):
        np.testing.assert_array_equal(array, before)
