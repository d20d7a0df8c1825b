"""Data that stay on a GPU: searches beside the same machine's processor, first-order steps beside their two products.

    python benchmarks/device.py [--quick] [--device cuda] [--profile]
    python benchmarks/device.py --ops [--profile]

Prints tables. `--quick` takes small data, and any device. A step's share is that of the device's own copy: bytes of A that two products
read, over the time of a step, over what a copy moves in that time. `--ops` needs no device: it counts the operations of a recorded step
on tensors of the processor that are taken for a device's; each is a kernel or two there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ksparse.firstorder import ahead

STEPS = (60, 460)  # the first ones are guessed, and one is recorded; those after them are timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true", help="where searches and steps on the device spend their time")
    parser.add_argument("--ops", action="store_true", help="operations of a recorded step, counted without a device")
    given = parser.parse_args()
    import torch

    if given.ops:
        operations(given.profile)
        return

    if given.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device: --device cpu")
    quick, device = given.quick, given.device
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    speed = copy_speed(device, 2**22 if quick else 2**30)
    print(f"{name}, PyTorch {torch.__version__}, a copy moves {speed / 1e12:.2f} TB/s\n", flush=True)
    print(
        "| a step | ms | two products, ms | ratio | share of the copy | recorded | largest difference of F |\n|---|--:|--:|--:|--:|---|--:|"
    )
    for m, n in ((500, 800),) if quick else ((3_600, 12_800), (20_000, 50_000)):
        steps(m, n, device, speed, given.profile)
    print("\n| a search | device, s | host, s | ratio | support | |\n|---|--:|--:|--:|---|---|")
    for m, n, k in ((2_000, 1_000, 10),) if quick else ((20_000, 20_000, 50), (200_000, 20_000, 100)):
        search(m, n, k, device, given.profile)
    wide, regressed = ((200, 20_000, 5), (2_000, 1_000, 10)) if quick else ((2_000, 1_000_000, 20), (20_000, 20_000, 50))
    search(*wide, device, given.profile, host=quick)
    regressor(*regressed, device)


def planted(m: int, n: int, k: int, device: str) -> tuple[Any, Any]:
    """A and b with k ones planted."""
    import torch

    generator = torch.Generator(device).manual_seed(0)
    A = torch.randn(m, n, generator=generator, device=device)
    x = torch.zeros(n, device=device)
    x[:: n // k] = 1.0
    return A, A @ x + torch.randn(m, generator=generator, device=device)


def search(m: int, n: int, k: int, device: str, profile: bool, host: bool = True) -> None:
    """`minimize` on planted data, the second of two runs on the device, and in NumPy beside it."""
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
        f"| auto, {m} × {n}, k = {k} | {seconds:.3f} | {on_host:.2f} | {on_host / seconds:.1f} | {same} | {found.status.name} |", flush=True
    )


def regressor(m: int, n: int, k: int, device: str) -> None:
    """An estimator with an intercept: columns are centred where they lie."""
    import ksparse as ks

    A, b = planted(m, n, k, device)
    seconds, found = [timed(lambda: ks.SparseRegressor(k).fit(A, b), device) for _ in range(2)][-1]
    on_host, other = timed(lambda: ks.SparseRegressor(k).fit(A.cpu().numpy(), b.cpu().numpy()), "cpu")
    same = "the same" if np.array_equal(found.coef_ != 0, other.coef_ != 0) else "another"
    status = found.result_.status.name
    print(
        f"| SparseRegressor, {m} × {n}, k = {k} | {seconds:.3f} | {on_host:.2f} | {on_host / seconds:.1f} | {same} | {status} |", flush=True
    )


def steps(m: int, n: int, device: str, speed: float, profile: bool) -> None:
    """Milliseconds of a step, of the two products that it cannot do without, and whether it gives what the step as written gives."""
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
        recorded, rehearse = [], ahead.rehearse

        def told(*given: Any, recorded: list[Any] = recorded, rehearse: Any = rehearse) -> Any:
            seen, recording = rehearse(*given)
            recorded.append(recording is not None)
            return seen, recording

        def run(count: int, method: Any = method) -> Any:
            return ks.minimize_penalized(loss, ks.TopK2(1.0, 20), method=method, max_iter=count, tol=0.0)

        ahead.rehearse = told
        few, many = (run(count) for count in STEPS)  # the first warms up as well
        ahead.rehearse = rehearse
        if profile and device == "cuda":
            with torch.profiler.profile() as profiler:
                run(STEPS[0] + 20)
            print(profiler.key_averages().table(sort_by="cuda_time_total", row_limit=14))
            show_profile(lambda: run(STEPS[1]))
        by_guesses = ahead.ByGuesses
        ahead.ByGuesses = lambda step, problem: ahead.AtOnce(step)  # type: ignore[assignment,misc]
        plain = run(STEPS[0])
        ahead.ByGuesses = by_guesses  # type: ignore[misc]
        shared = min(len(plain.trace.F), len(few.trace.F), 12)
        off = float(np.abs(plain.trace.F[:shared] / few.trace.F[:shared] - 1.0).max())
        timed_from = min(STEPS[0], many.nit - 1)
        per = 1e3 * (many.trace.elapsed[-1] - many.trace.elapsed[timed_from]) / max(1, many.nit - timed_from)
        share = 2.0 * A.nbytes / (1e-3 * per) / speed
        says = "yes" if any(recorded) else "no"
        print(f"| {m} × {n}, {name} | {per:.3f} | {both:.3f} | {per / both:.2f} | {share:.2f} | {says} | {off:.1e} |", flush=True)


def operations(named: bool) -> None:
    """Operations of a step that are no views: of one that is recorded, and how many of the steps were replayed."""
    import ksparse as ks

    A, b = planted(400, 2_000, 20, "cpu")
    loss = ks.LeastSquares(A, b)
    by_hand = ahead.on_device, ahead.graph_for
    ahead.on_device = lambda kind: True
    print("| a step | operations | of them without axes | replays a step |\n|---|--:|--:|--:|")
    for name, method in methods_of(loss).items():
        graphs: list[Counted] = []
        ahead.graph_for = lambda kind, graphs=graphs: graphs.append(Counted()) or graphs[-1]  # type: ignore[misc,func-returns-value]
        run = ks.minimize_penalized(loss, ks.TopK2(1.0, 20), method=method, max_iter=STEPS[0] + 40, tol=0.0)
        used = max((graph for graph in graphs if graph.replays), key=lambda graph: graph.replays, default=None)
        share = sum(graph.replays for graph in graphs) / max(1, run.nit)
        print(f"| {name} | {'–' if used is None else used.count} | {'–' if used is None else used.small} | {share:.2f} |", flush=True)
        if named and used is not None:
            print(", ".join(f"{count} {operation}" for operation, count in used.names.most_common()))
    ahead.on_device, ahead.graph_for = by_hand


class Counted:
    """A graph of the processor's: the work once more, its operations counted when it is recorded."""

    def __init__(self) -> None:
        self.count = self.small = self.replays = 0
        self.names: Counter[str] = Counter()

    def record(self, work: Callable[[], Any]) -> Any:
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        graph = self

        class Counting(TorchDispatchMode):
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                found = function(*args, **(kwargs or {}))
                first = found[0] if isinstance(found, tuple | list) and found else found
                if not any(one.alias_info and not one.alias_info.is_write for one in function._schema.returns):  # no view
                    wide = (kwargs or {}).get("dtype") not in (None, getattr(args[0], "dtype", None)) if args else False
                    graph.count += 1 + (wide and function.overloadpacket.__name__ in ("sum", "linalg_vector_norm"))  # cast first
                    graph.small += isinstance(first, torch.Tensor) and first.ndim == 0
                    graph.names[function.overloadpacket.__name__] += 1
                return found

        self.work = work
        with Counting():
            self.given = work()
        return self.given

    def replay(self) -> None:
        self.replays += 1
        self.given.copy_(self.work())


def methods_of(loss: Any) -> dict[str, Any]:
    import ksparse as ks

    fixed = ks.FixedStep(loss.lipschitz())
    return {"pdca, fixed": ks.PDCA(fixed), "pdca": ks.PDCA(), "apdca, fixed": ks.APDCA(fixed), "apdca": ks.APDCA(), "pdcae": ks.PDCAe()}


def copy_speed(device: str, entries: int) -> float:
    """Bytes that a copy reads and writes in a second."""
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
