"""Penalties and their effect on large entries
==============================================

Each penalty is a difference of convex functions. The ℓ1 norm shrinks every entry; the others leave large entries
unchanged, and those of the paper are 0 exactly on k-sparse points.
"""

import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

penalties = {
    "L1": ks.L1(1.0),
    "CappedL1": ks.CappedL1(1.0, 1.0),
    "LogSum": ks.LogSum(1.0, 0.5),
    "SCAD": ks.SCAD(1.0, 3.0),
    "MCP": ks.MCP(1.0, 2.0),
}
t = np.linspace(-3, 3, 241)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for position, (name, penalty) in enumerate(penalties.items()):
    colour, _, dash = ks.plotting.style(name, position)
    left.plot(t, [penalty.value(np.array([s])) for s in t], color=colour, linestyle=dash, label=name)
    right.plot(t, [penalty.prox(np.array([s]), 0.8)[0] for s in t], color=colour, linestyle=dash, label=name)
left.set(xlabel="x", ylabel="g(x)")
right.set(xlabel="u", ylabel="prox of 0.8·g at u")
left.legend(frameon=False)

# %%
# The same data with each penalty, at 0.3 times the smallest weight for which x = 0.

rng = np.random.default_rng(1)
A = rng.standard_normal((100, 200))
A /= np.linalg.norm(A, axis=0)
b = A[:, [10, 50, 90]] @ np.array([30.0, -20.0, 15.0]) + 0.5 * rng.standard_normal(100)
loss = ks.LeastSquares(A, b)
for name in ("L1", "MCP", "SCAD"):
    lam = 0.3 * ks.weight_max(loss, penalties[name])
    penalty = ks.L1(lam) if name == "L1" else getattr(ks, name)(lam, 3.0)
    result = ks.minimize_penalized(loss, penalty)
    print(f"{name:>5}: {dict(zip(result.support.tolist(), result.x[result.support].round(2).tolist(), strict=True))}")
best = ks.minimize(loss, 3)
print(f"k = 3: {dict(zip(best.support.tolist(), best.x[best.support].round(2).tolist(), strict=True))}")
plt.show()
