"""Data on a GPU: searches compared with the CPU of the same machine, first-order steps with their two products.

    python benchmarks/device.py [--quick] [--device cuda] [--profile] [--only steps]

Prints tables. `--quick` uses small data and any device. The share of a step is the bandwidth of its two products with A
(bytes read over the time of the step), relative to the bandwidth of a copy on the device.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = (60, 460)  # the first ones warm up; those after them are timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--profile", action="store_true", help="where searches and steps on the device spend their time"
    )
    parser.add_argument("--only", choices=("steps",), help="leave the searches out")
    given = parser.parse_args()
    import torch

    if given.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device: --device cpu")
    quick, device = given.quick, given.device
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    speed = copy_speed(device, 2**22 if quick else 2**30)
    print(f"{name}, PyTorch {torch.__version__}, a copy moves {speed / 1e12:.2f} TB/s\n", flush=True)
    print("| a step | ms | two products, ms | ratio | share of the copy | products a step |\n|---|--:|--:|--:|--:|--:|")
    for m, n in ((500, 800),) if quick else ((3_600, 12_800), (20_000, 50_000)):
        steps(m, n, device, speed, given.profile)
    if given.only:
        return
    print("\n| a search | device, s | host, s | ratio | support | |\n|---|--:|--:|--:|---|---|")
    for m, n, k in ((2_000, 1_000, 10),) if quick else ((20_000, 20_000, 50), (200_000, 20_000, 100)):
        search(m, n, k, device, given.profile)
    wide, regressed = (
        ((200, 20_000, 5), (2_000, 1_000, 10)) if quick else ((2_000, 1_000_000, 20), (20_000, 20_000, 50))
    )
    search(*wide, device, given.profile, host=quick)
    regressor(*regressed, device)


def planted(m: int, n: int, k: int, device: str) -> tuple[Any, Any]:
    """Return A and b with k planted coefficients of 1."""
    import torch

    generator = torch.Generator(device).manual_seed(0)
    A = torch.randn(m, n, generator=generator, device=device)
    x = torch.zeros(n, device=device)
    x[:: n // k] = 1.0
    return A, A @ x + torch.randn(m, generator=generator, device=device)


def search(m: int, n: int, k: int, device: str, profile: bool, host: bool = True) -> None:
    """Time `minimize` on planted data, the second of two runs on the device, and with NumPy."""
    import ksparse as ks

    A, b = planted(m, n, k, device)
    loss = ks.LeastSquares(A, b)
    seconds, found = [timed(lambda: ks.minimize(loss, k), device) for _ in range(3)][-1]
    if profile:
        show_profile(lambda: ks.minimize(loss, k))
    on_host, same = float("nan"), "–"
    if host:
        beside = ks.LeastSquares(A.cpu().numpy(), b.cpu().numpy())
        on_host, other = timed(lambda: ks.minimize(beside, k), "cpu")
        same = "the same" if np.array_equal(found.support, other.support) else "another"
    print(
        f"| auto, {m} × {n}, k = {k} | {seconds:.3f} | {on_host:.2f} | {on_host / seconds:.1f} | {same} | "
        f"{found.status.name} |",
        flush=True,
    )


def regressor(m: int, n: int, k: int, device: str) -> None:
    """Time an estimator with an intercept: columns are centred on the device."""
    import ksparse as ks

    A, b = planted(m, n, k, device)
    seconds, found = [timed(lambda: ks.SparseRegressor(k).fit(A, b), device) for _ in range(2)][-1]
    on_host, other = timed(lambda: ks.SparseRegressor(k).fit(A.cpu().numpy(), b.cpu().numpy()), "cpu")
    same = "the same" if np.array_equal(found.coef_ != 0, other.coef_ != 0) else "another"
    status = found.result_.status.name
    print(
        f"| SparseRegressor, {m} × {n}, k = {k} | {seconds:.3f} | {on_host:.2f} | {on_host / seconds:.1f} | {same} | "
        f"{status} |",
        flush=True,
    )


def steps(m: int, n: int, device: str, speed: float, profile: bool) -> None:
    """Measure the milliseconds of a step and of two products, and count the products of a step."""
    import torch

    import ksparse as ks

    A, b = planted(m, n, 20, device)
    x, r = torch.randn(n, device=device), torch.randn(m, device=device)

    def products() -> None:
        A @ x
        A.T @ r

    both = median_ms(products, device)
    loss = ks.LeastSquares(A, b)
    for name, method in methods_of(loss).items():

        def run(count: int, method: Any = method) -> Any:
            return ks.minimize_penalized(loss, ks.TopK2(1.0, 20), method=method, max_iter=count, tol=0.0)

        _, many = (run(count) for count in STEPS)  # the first warms up
        if profile and device == "cuda":
            with torch.profiler.profile() as profiler:
                run(STEPS[0] + 20)
            print(profiler.key_averages().table(sort_by="cuda_time_total", row_limit=14))
            show_profile(lambda: run(STEPS[1]))
        begin = min(STEPS[0], many.nit - 1)
        timed_steps = max(1, many.nit - begin)
        per = 1e3 * (many.trace.elapsed[-1] - many.trace.elapsed[begin]) / timed_steps
        used = (many.trace.products[-1] - many.trace.products[begin]) / timed_steps
        share = 2.0 * A.nbytes / (1e-3 * per) / speed
        print(
            f"| {m} × {n}, {name} | {per:.3f} | {both:.3f} | {per / both:.2f} | {share:.2f} | {used:.2f} |", flush=True
        )


def methods_of(loss: Any) -> dict[str, Any]:
    import ksparse as ks

    fixed = ks.FixedStep(loss.lipschitz())
    return {
        "pdca, fixed": ks.PDCA(fixed),
        "pdca": ks.PDCA(),
        "apdca, fixed": ks.APDCA(fixed),
        "apdca": ks.APDCA(),
        "pdcae": ks.PDCAe(),
    }


def copy_speed(device: str, entries: int) -> float:
    """Return the bytes per second that a copy reads and writes."""
    import torch

    source = torch.zeros(entries, device=device)
    target = torch.empty_like(source)
    return 2.0 * source.nbytes / (1e-3 * median_ms(lambda: target.copy_(source), device))


def median_ms(work: Callable[[], Any], device: str, repeats: int = 20) -> float:
    return statistics.median([1e3 * timed(work, device)[0] for _ in range(repeats + 3)][3:])


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    synchronise(device)
    before = time.perf_counter()
    found = work()
    synchronise(device)
    return time.perf_counter() - before, found


def show_profile(work: Callable[[], Any]) -> None:
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    profiler.runcall(work)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def synchronise(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
