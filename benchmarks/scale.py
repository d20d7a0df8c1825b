"""Millions of columns and data on disk: time, memory and passes of one search, each in its own process.

    python benchmarks/scale.py [--quick] [--threads 1] [--plot scale.png]

Planted problems. Memory is the peak of the search beyond the data and the memory held before; pages of mapped files do
not count. Files are written to a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from suite.memory import Anonymous

K = 20
PLACES = ("array, double", "array, single", "memmap", "parts", "zarr", "dask", "SparseRegressor, memmap")
HEAD = "| | seconds | CPU | memory, MiB | passes | status | planted |\n|---|--:|--:|--:|--:|---|---|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--threads", type=int, default=0, help="of the linear algebra; 0 for the library's own choice")
    parser.add_argument("--plot", type=Path, help="a picture of time and memory against the number of columns")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(**json.loads(given.child))))
        return
    m, n = (2_000, 1_000) if given.quick else (20_000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), m, n)
        print(f"{m} × {n} float32, k = {K}\n\n{HEAD}")
        for place in PLACES:
            show(place, run({"kind": place, "folder": folder}, given.threads))
    sizes = (10**3, 10**4, 10**5) if given.quick else (10**4, 10**5, 10**6, 10**7)
    rows, per = (10**4, 20) if given.quick else (10**5, 20)
    print(f"\nColumns: CSR of {rows} rows with {per} nonzeros each, k = {K}\n\n{HEAD}")
    found = []
    for size in sizes:
        found.append(run({"kind": "csr", "m": rows, "n": size, "per": per}, given.threads))
        show(f"{size} columns", found[-1])
    print(f"\nOthers\n\n{HEAD}")
    wide = 10**5 if given.quick else 10**7
    for tall, k in ((200, 5), (600, K)):  # 20 of so many columns need more rows
        case = {"kind": "generated", "m": tall, "n": wide, "k": k}
        show(f"dense, {tall} × {wide}, made block by block, k = {k}", run(case, given.threads))
    products, length = (2_048, 8_192) if given.quick else (32_768, 131_072)
    show(
        f"operator, {products} × {length} cosines, k = 50",
        run({"kind": "cosines", "m": products, "n": length}, given.threads),
    )
    if given.plot:
        plot(given.plot, sizes, found)


def run(case: dict[str, Any], threads: int) -> dict[str, Any]:
    """Run one case in its own process and return its measurements."""
    environment = dict(os.environ)
    if threads:
        environment |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(case)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    return (
        {"error": done.stderr.strip().splitlines()[-1]} if done.returncode else json.loads(done.stdout.splitlines()[-1])
    )


def show(name: str, row: dict[str, Any]) -> None:
    """Print a line of a table."""
    if "error" in row:
        print(f"| {name} | {row['error']} | | | | | |", flush=True)
        return
    parts = (
        f"{row['seconds']:.2f}",
        f"{row['cpu']:.2f}",
        f"{row['memory']:.0f}",
        str(row["passes"] or "–"),
        row["status"].lower().replace("_", "-"),
    )
    print(f"| {name} | {' | '.join(parts)} | {row['found']} of {row['planted']} |", flush=True)


def make(folder: Path, m: int, n: int) -> None:
    """Write A.npy, the same data in parts, and b.npy."""
    rng = np.random.default_rng(0)
    A = np.lib.format.open_memmap(folder / "A.npy", "w+", np.float32, (m, n))
    x = np.zeros(n, dtype=np.float32)
    x[:: n // K] = 1.0
    b = np.empty(m)
    (folder / "parts").mkdir()
    for part, rows in enumerate(np.array_split(np.arange(m), 8)):
        A[rows] = rng.standard_normal((rows.size, n), dtype=np.float32)
        b[rows] = A[rows] @ x + rng.standard_normal(rows.size)
        np.save(folder / "parts" / f"part{part}.npy", A[rows])
    np.save(folder / "b.npy", b)


def measure(kind: str, **size: Any) -> dict[str, Any]:
    """Run one search in this process."""
    import ksparse as ks

    A, b, planted = {"csr": csr, "generated": generated, "cosines": cosines}.get(kind, on_disk)(
        **({"kind": kind} | size)
    )
    k = len(planted)
    warm_up(kind)
    with Anonymous() as memory:
        began, worked = time.perf_counter(), time.process_time()
        result = (
            ks.SparseRegressor(k).fit(A, b).result_
            if kind.startswith("SparseRegressor")
            else ks.minimize(ks.LeastSquares(A, b), k)
        )
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    return {
        "seconds": seconds, "cpu": cpu, "memory": memory.peak, "passes": result.passes, "status": result.status.name,
        "found": int(np.isin(result.support, planted).sum()), "planted": k,
    }  # fmt: skip


def warm_up(kind: str) -> None:
    """Import modules that are loaded lazily."""
    import ksparse as ks

    small = np.random.default_rng(0).standard_normal((40, 6))
    ks.minimize(ks.LeastSquares(scipy.sparse.csr_array(small), small[:, 0]), 2)
    ks.minimize(ks.LeastSquares(ks.blocks(small), small[:, 0]), 2)
    if kind.startswith("SparseRegressor"):
        ks.SparseRegressor(2).fit(small, small[:, 0])


def on_disk(kind: str, folder: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Open the data that `make` wrote."""
    import ksparse as ks

    path, b = Path(folder), np.load(Path(folder) / "b.npy")
    mapped = np.load(path / "A.npy", mmap_mode="r")
    m, n = mapped.shape
    A: Any = mapped
    if kind.startswith("array"):
        A = np.load(path / "A.npy")
        A = A.astype(np.float64) if "double" in kind else A
    elif kind == "parts":
        A = ks.blocks(path / "parts")
    elif kind == "zarr":
        import zarr

        A = zarr.create_array(
            str(path / "A.zarr"), overwrite=True, shape=(m, n), chunks=(500, n), dtype=mapped.dtype, compressors=None
        )
        for begin in range(0, m, 500):
            A[begin : begin + 500] = mapped[begin : begin + 500]
    elif kind == "dask":
        import dask.array as da

        A = da.from_array(mapped, chunks=(1_000, n))
    return A, b, np.arange(0, n, n // K)


def csr(kind: str, m: int, n: int, per: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return sparse data with random nonzeros; the fullest columns are planted."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, n, m * per, dtype=np.int32), np.arange(0, m * per + 1, per, dtype=np.int32)
    A = scipy.sparse.csr_array((rng.standard_normal(m * per), *places), shape=(m, n))
    A.sum_duplicates()
    planted = np.sort(np.argsort(-np.bincount(A.indices, minlength=n), kind="stable")[:K])
    return A, A[:, planted] @ rng.choice([-2.0, 2.0], K) + 0.1 * rng.standard_normal(m), planted


class Toeplitz:
    """Rows cut from one long vector, row i from entry i·step: dense, computed when they are read."""

    def __init__(self, m: int, n: int, step: int = 997) -> None:
        self.shape, self.dtype, self.step = (m, n), np.dtype(np.float32), step
        self.vector = np.random.default_rng(0).standard_normal(n + step * m, dtype=np.float32)

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.array(
            [self.vector[i * self.step : i * self.step + self.shape[1]] for i in range(rows.start, rows.stop)]
        )


def generated(kind: str, m: int, n: int, k: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return dense data that are never stored as a whole."""
    A, rng = Toeplitz(m, n), np.random.default_rng(1)
    planted = np.sort(rng.choice(n, k, replace=False))
    image = np.array([A[slice(i, i + 1)][0, planted].sum() for i in range(m)])
    return A, image + 0.1 * rng.standard_normal(m), planted


def cosines(kind: str, m: int, n: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return random rows of the cosine transform as an operator."""
    from scipy.fft import dct, idct
    from scipy.sparse.linalg import LinearOperator

    rng = np.random.default_rng(0)
    rows, planted = np.sort(rng.choice(n, m, replace=False)), np.sort(rng.choice(n, 50, replace=False))

    def there(x: np.ndarray) -> np.ndarray:
        return dct(np.ravel(x), norm="ortho")[rows]

    def back(r: np.ndarray) -> np.ndarray:
        whole = np.zeros(n)
        whole[rows] = np.ravel(r)
        return idct(whole, norm="ortho")

    x = np.zeros(n)
    x[planted] = rng.choice([-1.0, 1.0], 50)
    b = there(x)
    noise = 0.1 * np.linalg.norm(b) / m**0.5 * rng.standard_normal(m)
    return LinearOperator((m, n), matvec=there, rmatvec=back, dtype=np.float64), b + noise, planted


def plot(path: Path, sizes: tuple[int, ...], found: list[dict[str, Any]]) -> None:
    """Plot time and memory against the number of columns."""
    from matplotlib.figure import Figure

    from ksparse.plotting import COLOURS

    figure = Figure(figsize=(9, 3.6), layout="constrained", facecolor="white")
    for axes, name, unit in zip(
        figure.subplots(1, 2), ("cpu", "memory"), ("CPU seconds", "MiB beyond the data"), strict=True
    ):
        axes.loglog(sizes, [row.get(name, np.nan) for row in found], color=COLOURS[0], marker="o")
        axes.set(xlabel=f"columns of a CSR matrix, k = {K}", ylabel=unit)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
