"""Linear operators: sparse recovery from cosine measurements
=============================================================

Recover 50 spikes from a quarter of the cosine transform of 131,072 samples. A dense copy of the matrix would have 4
billion entries; the operator is never stored, and only a few columns are computed.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import dct, idct
from scipy.sparse.linalg import LinearOperator

import ksparse as ks

M, N, K = 32_768, 131_072, 50


class Cosines(LinearOperator):
    """Random rows of the orthonormal cosine transform; products are counted."""

    def __init__(self, m: int, n: int, rng: np.random.Generator) -> None:
        self.rows, self.products = np.sort(rng.choice(n, m, replace=False)), 0
        super().__init__(np.float64, (m, n))

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        self.products += 1
        return dct(np.ravel(x), norm="ortho")[self.rows]

    def _rmatvec(self, r: np.ndarray) -> np.ndarray:
        self.products += 1
        whole = np.zeros(self.shape[1])
        whole[self.rows] = np.ravel(r)
        return idct(whole, norm="ortho")


rng = np.random.default_rng(0)
A = Cosines(M, N, rng)
spikes = np.zeros(N)
spikes[rng.choice(N, K, replace=False)] = rng.uniform(1, 2, K) * rng.choice([-1, 1], K)
clean = A @ spikes
b = clean + 0.1 * np.linalg.norm(clean) / M**0.5 * rng.standard_normal(M)

# %%
# With products only, hard thresholding proposes columns, and the search is restricted to those.

A.products = 0
result = ks.minimize(ks.LeastSquares(A, b), K)
found = np.intersect1d(result.support, np.flatnonzero(spikes)).size
print(f"products only: {found} of {K} spikes, {A.products} products, {result.elapsed:.1f} s, {result.status.name}")


# %%
# With access to its columns, all swaps can be ranked, and it is proved that none improves the solution.


def columns(rows: np.ndarray, n: int, S: np.ndarray) -> np.ndarray:
    """Return A[:, S] of the cosine transform."""
    return np.where(rows == 0, 1.0, 2**0.5)[:, None] / n**0.5 * np.cos(np.pi / n * np.outer(rows, S + 0.5))


def column_squares(rows: np.ndarray, n: int) -> np.ndarray:
    """Σᵢ Aᵢⱼ², by cos² t = (1 + cos 2t)/2: cosines at even frequencies, 2r ≥ n folded back with another sign."""
    weight, frequency = np.where(rows == 0, 1.0, 2.0) / n, 2 * rows
    beyond = frequency > n
    cosines = np.zeros(n + 1)
    np.add.at(cosines, np.where(beyond, 2 * n - frequency, frequency), np.where(beyond, -weight, weight) / 2)
    return weight.sum() / 2 + dct(cosines[:n], type=3, norm=None) / 2 + cosines[0] / 2


known = ks.operator(A, diagonal=column_squares(A.rows, N), columns=lambda S: columns(A.rows, N, S))
A.products = 0
proved = ks.minimize(ks.LeastSquares(known, b), K)
found = np.intersect1d(proved.support, np.flatnonzero(spikes)).size
print(
    f"lengths and columns known: {found} of {K} spikes, {A.products} products, {proved.elapsed:.1f} s, "
    f"{proved.status.name}"
)

# %%
# The true and the recovered spikes.

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ax.vlines(np.flatnonzero(spikes), 0, spikes[spikes != 0], color="0.75", linewidth=3, label="true")
ax.plot(proved.support, proved.x[proved.support], "o", markersize=4, color=ks.plotting.COLOURS[0], label="recovered")
ax.axhline(0, color="0.3", linewidth=0.8)
ax.set(xlabel="sample", ylabel="height")
ax.legend(frameon=False)
plt.show()
