"""Custom JAX loss: a survival model
====================================

Cox's partial likelihood of censored lifetimes as a JAX function of ten lines: check its gradient, select three of 300
genes, and compare them with the true ones. (``ks.Cox`` is the built-in version; here it stands for any custom loss.)
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
    """Return Cox's negative partial log-likelihood of the coefficients."""
    score = rows @ x
    return jnp.sum(died * (jnp.log(jnp.cumsum(jnp.exp(score))) - score))


# %%
# Check the derivatives in one call.

loss = ks.autodiff(partial_likelihood, n=300, backend="jax")
print(ks.check_gradient(loss, 0.1 * rng.standard_normal(300)))

# %%
# The best three genes; then the best three with nonnegative coefficients.

result = ks.minimize(loss, 3)
print(result)
for gene in result.support:
    print(f"gene {gene}: {result.x[gene]:+.2f}, true {planted[gene]:+.2f}")
risks = ks.minimize(loss, 3, ks.Nonnegative())
print(f"with nonnegative coefficients: genes {risks.support.tolist()}, {risks.fun:.4f} instead of {result.fun:.4f}")

# %%
# Objective for every number of genes.

path = ks.k_path(loss, range(1, 7))
ks.plotting.plot_frontier(path, label="negative log partial likelihood")
ks.plotting.plot_path(path, [f"gene {j}" for j in range(300)])
plt.show()
