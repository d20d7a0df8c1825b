"""Data wherever they lie: seconds, memory beyond the interpreter and passes of one search, each kind in a process of its own.

    python benchmarks/scale.py [--quick] [--threads 1]

A planted problem in single precision, k = 20: 20,000 × 10,000 (0.75 GiB). The files are made in a temporary folder, and removed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

KINDS = ("array, double", "array, single", "memmap", "parts", "zarr", "dask", "SparseRegressor, memmap")
K = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 × 1,000")
    parser.add_argument("--threads", type=int, default=0, help="of the linear algebra; 0 for the library's own choice")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(*given.child)))
        return
    m, n = (2_000, 1_000) if given.quick else (20_000, 10_000)
    environment = dict(os.environ)
    if given.threads:
        environment |= {name: str(given.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), m, n)
        print(f"| {m} × {n} float32, k = {K} | seconds | memory, MiB | passes | status |\n|---|--:|--:|--:|---|")
        for kind in KINDS:
            command = [sys.executable, __file__, "--child", kind, folder]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                print(f"| {kind} | {done.stderr.strip().splitlines()[-1]} | | | |")
                continue
            row = json.loads(done.stdout.splitlines()[-1])
            print(f"| {kind} | {row['seconds']:.2f} | {row['memory']:.0f} | {row['passes'] or '–'} | {row['status']} |", flush=True)


def make(folder: Path, m: int, n: int) -> None:
    """A.npy, the same in parts, and b.npy."""
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


def measure(kind: str, folder: str) -> dict[str, object]:
    """One search, in this process."""
    import resource
    import time

    import ksparse as ks

    path, b = Path(folder), np.load(Path(folder) / "b.npy")
    ks.minimize(ks.LeastSquares(np.eye(5), np.ones(5)), 2)  # what is imported late
    if kind.startswith("SparseRegressor"):
        _ = ks.SparseRegressor
    A = opened(kind, path)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    result = ks.SparseRegressor(K).fit(A, b).result_ if kind.startswith("SparseRegressor") else ks.minimize(ks.LeastSquares(A, b), K)
    seconds = time.perf_counter() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    mapped = A.nbytes / 2**20 if isinstance(A, np.memmap) else 0.0  # its pages count as ours, though the system may take them back
    return {"seconds": seconds, "memory": max(0.0, memory - mapped), "passes": result.passes, "status": result.status.name}


def opened(kind: str, path: Path) -> object:
    """The data of a kind."""
    if kind.startswith("array"):
        A = np.load(path / "A.npy")
        return A.astype(np.float64) if "double" in kind else A
    if kind == "parts":
        import ksparse as ks

        return ks.blocks(path / "parts")
    mapped = np.load(path / "A.npy", mmap_mode="r")
    if kind == "zarr":
        import zarr

        layout = {"shape": mapped.shape, "chunks": (500, mapped.shape[1]), "dtype": mapped.dtype, "compressors": None}
        store = zarr.create_array(str(path / "A.zarr"), overwrite=True, **layout)
        for begin in range(0, mapped.shape[0], 500):
            store[begin : begin + 500] = mapped[begin : begin + 500]
        return store
    if kind == "dask":
        import dask.array as da

        return da.from_array(mapped, chunks=(1_000, mapped.shape[1]))
    return mapped


if __name__ == "__main__":
    main()
