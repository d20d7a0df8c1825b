"""Data that stay on a GPU: a search beside the same machine's processor, and a first-order step beside its two products.

    python benchmarks/device.py [--quick] [--device cuda]

Prints a table. `--quick` takes small data, and any device.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true", help="where the search on the device spends its time")
    given = parser.parse_args()
    import torch

    if given.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device: --device cpu")
    print(torch.cuda.get_device_name() if given.device == "cuda" else "cpu", flush=True)
    for m, n, k in ((2_000, 1_000, 10),) if given.quick else ((20_000, 20_000, 50), (200_000, 20_000, 100)):
        search(m, n, k, given.device, given.profile)
    for m, n in ((500, 800),) if given.quick else ((3_600, 12_800), (20_000, 50_000)):
        steps(m, n, given.device)


def search(m: int, n: int, k: int, device: str, profile: bool) -> None:
    """`minimize` on planted data, on the device and in NumPy, the second of two runs each."""
    import torch

    import ksparse as ks

    generator = torch.Generator(device).manual_seed(0)
    A = torch.randn(m, n, generator=generator, device=device)
    x = torch.zeros(n, device=device)
    x[:: n // k] = 1.0
    b = A @ x + torch.randn(m, generator=generator, device=device)
    loss = ks.LeastSquares(A, b)
    found = []
    for _ in range(2):
        synchronise(device)
        before = time.perf_counter()
        found.append(ks.minimize(loss, k))
        synchronise(device)
        seconds = time.perf_counter() - before
    if profile:
        import cProfile
        import pstats

        profiler = cProfile.Profile()
        profiler.runcall(ks.minimize, loss, k)
        pstats.Stats(profiler).sort_stats("cumtime").print_stats(40)
    host = ks.LeastSquares(A.cpu().numpy(), b.cpu().numpy())
    before = time.perf_counter()
    other = ks.minimize(host, k)
    on_host = time.perf_counter() - before
    same = np.array_equal(found[-1].support, other.support)
    print(
        f"auto {m} x {n}, k = {k}: {seconds:.3f} s on the device, {on_host:.3f} s on its host ({on_host / seconds:.1f} x), "
        f"{'the same support' if same else 'another support'}, {found[-1].status.name}",
        flush=True,
    )


def steps(m: int, n: int, device: str) -> None:
    """Milliseconds of a step, of the two products that it cannot do without, and their ratio."""
    import torch

    import ksparse as ks

    generator = torch.Generator(device).manual_seed(0)
    A = torch.randn(m, n, generator=generator, device=device)
    b = A[:, 0] + torch.randn(m, generator=generator, device=device)
    x, r = torch.randn(n, device=device), torch.randn(m, device=device)

    def products() -> None:
        A @ x
        A.T @ r

    both = median_ms(products, device)
    loss = ks.LeastSquares(A, b)
    step = ks.FixedStep(loss.lipschitz())
    for name, method in (("pdca, fixed", ks.PDCA(step)), ("apdca, fixed", ks.APDCA(step)), ("apdca", ks.APDCA()), ("pdcae", ks.PDCAe())):
        results = [ks.minimize_penalized(loss, ks.TopK2(1.0, 20), method=method, max_iter=count, tol=0.0) for count in (20, 220)]
        per = 1e3 * (results[1].elapsed - results[0].elapsed) / max(1, results[1].nit - results[0].nit)
        print(f"step {m} x {n}, {name}: {per:.2f} ms, two products {both:.2f} ms, ratio {per / both:.2f}", flush=True)


def median_ms(work: Callable[[], Any], device: str, repeats: int = 20) -> float:
    times = []
    for _ in range(repeats + 3):
        synchronise(device)
        before = time.perf_counter()
        work()
        synchronise(device)
        times.append(1e3 * (time.perf_counter() - before))
    return statistics.median(times[3:])


def synchronise(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
