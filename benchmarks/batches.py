"""Thousands of right-hand sides on one A: `minimize_many`, single `minimize` calls, batched OMP of scikit-learn, NNLS.

Scenes of 224 bands and a library of 240 spectra, k = 5, nonnegative: the two real ones, and mixtures of 5 random
minerals; 30 dB of noise. OMP has no sign constraints: NNLS solves its support again, and likewise the k largest entries
of NNLS on all spectra. An answer counts as equal to that of `minimize` if its objective, from the raw data, is at most
1e-6 larger, relative.

Claims: at most 0.5 ms of CPU time per pixel on one thread; equal to single solves on 99 % of every scene. Needs the
unmixing data in the folder named by KSPARSE_DATA.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls
from sklearn.linear_model import orthogonal_mp_gram

import ksparse as ks
from ksparse.datasets import unmixing

K = 5


def noisy(clean: np.ndarray, rng: np.random.Generator, decibel: float = 30.0) -> np.ndarray:
    noise = rng.standard_normal(clean.shape)
    return clean + noise * np.linalg.norm(clean, axis=0) / np.linalg.norm(noise, axis=0) * 10 ** (-decibel / 20)


def scenes(pixels: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng, found = np.random.default_rng(0), {}
    for name, (A, X) in unmixing().items():
        found[name] = (A, noisy(A @ X[:, rng.permutation(X.shape[1])[:pixels]], rng))
    X = np.zeros((A.shape[1], pixels))
    for pixel in range(pixels):
        X[rng.choice(A.shape[1], K, replace=False), pixel] = rng.dirichlet(np.ones(K))
    return found | {"random": (A, noisy(A @ X, rng))}


def on_support(A: np.ndarray, b: np.ndarray, support: np.ndarray) -> np.ndarray:
    x = np.zeros(A.shape[1])
    x[support] = nnls(A[:, support], b)[0]
    return x


def contenders(A: np.ndarray, B: np.ndarray, sample: int) -> dict[str, tuple[Callable[[], np.ndarray], int]]:
    """Return each contender's call, which gives x with one column per pixel, and its number of pixels."""
    size = np.linalg.norm(A, axis=0)

    def many(**how: int) -> np.ndarray:
        return ks.minimize_many(A, B, K, ks.Nonnegative(), **how).x.toarray()

    def single() -> np.ndarray:
        return np.column_stack([ks.minimize(ks.LeastSquares(A, b), K, ks.Nonnegative()).x for b in B.T[:sample]])

    def pursuit() -> np.ndarray:
        X = orthogonal_mp_gram((A / size).T @ (A / size), (A / size).T @ B, n_nonzero_coefs=K)
        return np.column_stack([on_support(A, b, np.flatnonzero(x)) for b, x in zip(B.T, X.T, strict=True)])

    def largest() -> np.ndarray:
        chosen = [np.argsort(-nnls(A, b, maxiter=10 * A.shape[1])[0])[:K] for b in B.T[:sample]]
        return np.column_stack([on_support(A, b, support) for b, support in zip(B.T, chosen, strict=False)])

    count = B.shape[1]
    return {
        "minimize, one by one": (single, sample),
        "minimize_many": (many, count),
        "minimize_many, effort 2": (lambda: many(effort=2), count),
        "minimize_many, 2 threads": (lambda: many(n_jobs=2), count),
        "OMP of all (sklearn), NNLS on it": (pursuit, count),
        "NNLS (scipy), 5 largest": (largest, sample),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pixels", type=int, default=2000)
    parser.add_argument("--sample", type=int, default=1000, help="pixels that are solved one by one, and compared")
    options = parser.parse_args()
    table = Table(
        title=f"{options.pixels} pixels of 224 bands, 240 spectra, k = {K}, nonnegative; shares of {options.sample} "
        "pixels"
    )
    for column in ("scene", "contender", "ms a pixel", "CPU ms", "as good", "better", "mean excess"):
        table.add_column(column, justify="left" if column in ("scene", "contender") else "right")
    for name, (A, B) in scenes(options.pixels).items():
        ks.minimize_many(A, B[:, :100], K, ks.Nonnegative())  # compiled once
        reference = np.zeros(0)
        for contender, (call, count) in contenders(A, B, options.sample).items():
            began = time.perf_counter(), time.process_time()
            X = call()
            seconds, busy = time.perf_counter() - began[0], time.process_time() - began[1]
            fun = 0.5 * ((A @ X[:, : options.sample] - B[:, : options.sample]) ** 2).sum(axis=0)
            reference = fun if not reference.size else reference
            excess = fun / reference - 1.0
            table.add_row(
                name, contender, f"{1e3 * seconds / count:.2f}", f"{1e3 * busy / count:.2f}",
                f"{(excess <= 1e-6).mean():.3f}", f"{(excess < -1e-6).mean():.3f}", f"{100 * excess.mean():+.2f} %",
            )  # fmt: skip
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
