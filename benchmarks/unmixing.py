"""Minerals in a pixel: support recovery on real spectra with known sparse nonnegative abundances and 30 dB of noise.

`SparseRegressor(k, positive=True)` at the true k, compared with the k largest entries of nonnegative least squares and
orthogonal matching pursuit with negative entries clipped. Needs the unmixing data in the folder named by
KSPARSE_DATA.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls
from sklearn.linear_model import orthogonal_mp

from ksparse.datasets import unmixing
from ksparse.estimators import SparseRegressor


def recover(A: np.ndarray, y: np.ndarray, k: int) -> dict[str, tuple[set[int], float]]:
    """Return the support that each contender finds, and its seconds."""

    def ours() -> np.ndarray:
        return SparseRegressor(k, positive=True, fit_intercept=False).fit(A, y).coef_

    def largest() -> np.ndarray:
        x = nnls(A, y, maxiter=10 * A.shape[1])[0]
        return np.where(x >= np.sort(x)[-k], x, 0.0)

    def pursuit() -> np.ndarray:
        size = np.linalg.norm(A, axis=0)
        return np.maximum(orthogonal_mp(A / size, y, n_nonzero_coefs=k), 0.0)

    found = {}
    for name, call in (("SparseRegressor", ours), ("NNLS, k largest", largest), ("OMP, clipped", pursuit)):
        began = time.perf_counter()
        x = call()
        found[name] = (set(np.flatnonzero(x).tolist()), time.perf_counter() - began)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pixels", type=int, default=150)
    parser.add_argument(
        "--least", type=float, default=0.02, help="the least abundance in a pixel that counts as clean enough"
    )
    options = parser.parse_args()
    console, rng = Console(width=110), np.random.default_rng(0)
    table = Table(
        title=f"Supports of pixels with abundances of at least {options.least:g}, 30 dB: found exactly, and share of "
        "true members found"
    )
    for column in ("data", "contender", "pixels", "exactly", "share", "ms a pixel"):
        table.add_column(column, justify="left" if column in ("data", "contender") else "right")
    for name, (A, X) in unmixing().items():
        counts = (X > 0).sum(axis=0)
        least = np.where(X > 0, X, np.inf).min(axis=0)
        usable = rng.permutation(np.flatnonzero((counts >= 1) & (least >= options.least)))[: options.pixels]
        score: dict[str, list[tuple[bool, float, float]]] = {}
        for pixel in usable:
            truth, clean = set(np.flatnonzero(X[:, pixel] > 0).tolist()), A @ X[:, pixel]
            noise = rng.standard_normal(clean.size)
            y = clean + noise * np.linalg.norm(clean) / np.linalg.norm(noise) * 10 ** (-30 / 20)
            for contender, (support, seconds) in recover(A, y, len(truth)).items():
                score.setdefault(contender, []).append((support == truth, len(support & truth) / len(truth), seconds))
        for contender, rows in score.items():
            exactly, share, seconds = np.array(rows, dtype=float).T
            table.add_row(
                name,
                contender,
                str(len(rows)),
                f"{int(exactly.sum())}",
                f"{share.mean():.3f}",
                f"{1e3 * np.median(seconds):.1f}",
            )
    console.print(table)


if __name__ == "__main__":
    main()
