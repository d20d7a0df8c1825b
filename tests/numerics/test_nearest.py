"""The compiled y-step beside the one by whole arrays."""

import numpy as np
import pytest

from ksparse.numerics import relaxation
from ksparse.numerics.constraints import Linear
from ksparse.numerics.relaxation import Limits, Perspective, Sizes
from ksparse.numerics.relaxation_kernels import FREE, IN, OUT


def limited(rng, n, groups):
    """Limits on labels of variables, or of groups of them."""
    member = np.unique(rng.integers(0, max(1, n // 2), n), return_inverse=True)[1] if groups else np.arange(n)
    label = np.unique(rng.integers(0, 4, member.max() + 1), return_inverse=True)[1]
    least = rng.integers(0, 2, label.max() + 1)
    k = int(rng.integers(least.sum() + 1, least.sum() + label.size + 2))
    return Limits(k, label, least, least + rng.integers(1, 4, least.size), member)


def drawn(rng, n, k, count=40, limits=None):
    """A relaxation with bounds and floors of every kind, nodes with every state, and points to be near to."""
    Z = rng.standard_normal((2 * n, n))
    H = np.corrcoef(Z.T)
    d = 0.02 * np.abs(rng.standard_normal(n)) * (rng.random(n) < 0.8)
    floor = 0.05 * (rng.random(n) < 0.5)
    low = np.where(rng.random(n) < 0.3, -np.inf, -rng.random(n)) if rng.integers(0, 2) else np.zeros(n)
    low = np.where(low < 0, np.minimum(low, -floor - 0.01), low)
    high = np.maximum(np.where(rng.random(n) < 0.3, np.inf, rng.random(n)), floor + 0.01)
    linear = Linear.of(n, lower=low, upper=high, E=np.ones((1, n)), f=np.array([0.5]))
    method = Perspective(H, rng.standard_normal(n), d, linear, Sizes.between(low, high, floor), k, limits=limits)
    state = rng.choice([FREE, IN, OUT], p=[0.7, 0.1, 0.2], size=(count, n))
    for row in state:
        row[np.flatnonzero(row == IN)[k:]] = FREE
    if limits is not None and not limits.single:  # groups are decided as a whole
        state = state[:, np.unique(limits.member, return_index=True)[1]][:, limits.member]
    if limits is not None:  # no more than one of a label is in
        for row in state:
            for label in range(limits.least.size):
                inside = np.flatnonzero((row == IN) & (limits.label[limits.member] == label))
                row[inside[limits.member[inside] != limits.member[inside[:1]]]] = FREE
    nodes = method.start(state)
    nodes.sigma = np.abs(rng.standard_normal(nodes.sigma.shape))
    nodes.up = nodes.up * rng.uniform(0.9, 1.0, nodes.up.shape)  # boxes of their own
    return method, rng.standard_normal((count, n)), nodes


@pytest.mark.parametrize("kind", ["no limits", "labels", "groups"])
@pytest.mark.parametrize("seed", range(12))
def test_the_loop_is_the_arrays(seed, kind, monkeypatch):
    for module in (relaxation, relaxation):
        monkeypatch.setattr(module, "NEWTON", 100)
        monkeypatch.setattr(module, "INNER", 100)  # to the end, where both settle
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    limits = None if kind == "no limits" else limited(rng, n, kind == "groups")
    method, v, nodes = drawn(rng, n, int(rng.integers(1, n + 1)), limits=limits)
    given = v.copy(), nodes.state.copy(), nodes.sigma.copy()
    (y, z, _), (y2, z2, _) = (step(v, nodes, method.weight) for step in (method._nearest, method._nearest_compiled))
    np.testing.assert_allclose(z2, z, atol=1e-4)
    seen = (z > 1e-6) | (method.d > 0)  # without curvature y is anything at a share of nearly 0
    np.testing.assert_allclose(y2[seen], y[seen], atol=5e-3)
    for array, before in zip((v, nodes.state, nodes.sigma), given, strict=True):
        np.testing.assert_array_equal(array, before)
