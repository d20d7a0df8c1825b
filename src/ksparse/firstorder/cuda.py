"""CUDA graphs of PyTorch: kernels recorded while they are told, and launched again all at once."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ksparse.base.desk import UnforeseenError

READING = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "item")  # who calls these waits for an answer
MOVING = ("_to_copy", "copy_", "to")


class CudaGraph:
    """Work that is recorded once and replayed."""

    def __init__(self) -> None:
        self._graph = torch.cuda.CUDAGraph()

    def record(self, work: Callable[[], Any]) -> Any:
        """Once to see that it does not wait for a number, and that all is there that is made when first asked for; once for the record."""
        now, stream = torch.cuda.current_stream(), torch.cuda.Stream()
        stream.wait_stream(now)
        with torch.cuda.stream(stream):
            with Watch():
                work()
            torch.cuda.synchronize()
            given = self._recorded(work)
        now.wait_stream(stream)
        return given

    def _recorded(self, work: Callable[[], Any]) -> Any:
        """As `torch.cuda.graph` does it, but for the garbage and the spare memory that it collects: that takes as long as many steps."""
        collecting = gc.isenabled()
        gc.disable()  # nothing of others is freed meanwhile
        try:
            self._graph.capture_begin(capture_error_mode="thread_local")
            try:
                return work()
            finally:
                self._graph.capture_end()
        except RuntimeError as error:
            raise UnforeseenError(f"no CUDA graph: {error}") from error
        finally:
            if collecting:
                gc.enable()

    def replay(self) -> None:
        self._graph.replay()


class Watch(TorchDispatchMode):
    """Refuses what a graph cannot hold: to read a number, to move data between host and device."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        found = None if name in READING else function(*args, **(kwargs or {}))
        places = {one.device.type for one in (*args, found) if isinstance(one, torch.Tensor)} if name in MOVING else set()
        if name in READING or len(places) > 1 or (name == "index" and _by_mask(args)):
            raise UnforeseenError(f"{name} has to wait for the device")
        return found


def _by_mask(args: Any) -> bool:
    return any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in args[1])
