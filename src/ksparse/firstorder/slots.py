"""Places on a device for the numbers that a recorded step is given by the host."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

from ksparse.base.arrays import Array, namespace
from ksparse.base.desk import UnforeseenError

ROOM = 64  # more numbers than any step multiplies vectors by


class Slots:
    """One for each number that a vector meets, in the order in which they are met."""

    def __init__(self, beside: Array) -> None:
        xp = namespace(beside)
        self._there = xp.ones(ROOM, dtype=xp.float64, device=compat.device(beside))  # while it is recorded: no vector is spoilt by 1
        self._here = _here(beside)
        self._filled: list[float] = []
        self.wanted: list[Any] = []

    def begin(self) -> None:
        """The step is told anew."""
        self.wanted = []

    def place(self, number: Any) -> Array:
        """For one number more."""
        if len(self.wanted) == ROOM:
            raise UnforeseenError(f"more than {ROOM} numbers that vectors meet")
        self.wanted.append(number)
        return self._there[len(self.wanted) - 1]

    def fill(self, values: list[float]) -> None:
        """Give them to the device, where they are others than those that it has."""
        if values == self._filled:
            return
        self._filled = values
        np.asarray(self._here)[: len(values)] = values
        if compat.is_torch_array(self._there):
            self._there.copy_(self._here, non_blocking=True)  # what was copied last has been used: its step was read
        else:
            self._there[...] = namespace(self._there).asarray(self._here)


def _here(beside: Array) -> Any:
    """The host's side; of PyTorch in memory that a GPU reads by itself."""
    if not compat.is_torch_array(beside):
        return np.zeros(ROOM)
    import torch

    return torch.zeros(ROOM, dtype=torch.float64, pin_memory=beside.device.type == "cuda")
