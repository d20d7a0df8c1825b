"""A survival model from ten lines of JAX
======================================

Cox's partial likelihood of censored lifetimes, written as a function of JAX: its gradient is checked, three of 300 genes are found, and
stand beside what was planted. (``ks.Cox`` is the same loss, made; here it is a stand-in for yours.)
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import ksparse as ks

rng = np.random.default_rng(0)
genes, planted = rng.standard_normal((150, 300)), np.zeros(300)
planted[[3, 14, 159]] = 1.2, -0.9, 0.8
life, left = rng.exponential(np.exp(-genes @ planted)), rng.exponential(2.0, 150)
order = np.argsort(-np.minimum(life, left))  # the longest lives first: who is at risk when one dies are those before
rows, died = genes[order], (life <= left).astype(float)[order]


def partial_likelihood(x):
    """Of the genes' coefficients, negative and in logarithms."""
    score = rows @ x
    return jnp.sum(died * (jnp.log(jnp.cumsum(jnp.exp(score))) - score))


# %%
# Whether its derivatives are those of its values is one call.

loss = ks.autodiff(partial_likelihood, n=300, backend="jax")
print(ks.check_gradient(loss, 0.1 * rng.standard_normal(300)))

# %%
# The best three genes; then the best three of which each is a risk.

result = ks.minimize(loss, 3)
print(result)
for gene in result.support:
    print(f"gene {gene}: {result.x[gene]:+.2f}, planted {planted[gene]:+.2f}")
risks = ks.minimize(loss, 3, ks.Nonnegative())
print(f"with risks alone: genes {risks.support.tolist()}, {risks.fun:.4f} instead of {result.fun:.4f}")

# %%
# What every number of genes gives away.

path = ks.k_path(loss, range(1, 7))
ks.plotting.plot_frontier(path, label="negative log partial likelihood")
ks.plotting.plot_path(path, [f"gene {j}" for j in range(300)])
plt.show()
