"""The table of a .npz file, not read whole: mapped where it is stored as it is, unpacked as its rows are read where it is compressed."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NAMED = ("X", "A")  # which of several tables is meant
LOCAL = 30  # bytes of a member's header before its name


class Head(NamedTuple):
    """What a .npy header says, and where it ends."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    end: int


def npz(path: Path) -> Any:
    """The rows of the table that a .npz file holds: its only member with 2 axes, or the one that is called X or A."""
    with zipfile.ZipFile(path) as archive:
        heads = {name: _head(archive, name) for name in archive.namelist() if name.endswith(".npy")}
        tables = [name for name, head in heads.items() if len(head.shape) == 2]
        named = [name for name in tables if name.removesuffix(".npy") in NAMED]
        chosen = tables if len(tables) == 1 else named
        if len(chosen) != 1:
            held = ", ".join(f"{name.removesuffix('.npy')} {head.shape}" for name, head in heads.items()) or "no arrays"
            raise ValueError(f"source must hold one table, or one called X or A, but {path.name} holds {held}: save it as .npy")
        head, member = heads[chosen[0]], archive.getinfo(chosen[0])
    if head.dtype.hasobject:
        raise TypeError(f"source must hold numbers, but {path.name} holds Python objects")
    needed = head.end + math.prod(head.shape) * head.dtype.itemsize
    if member.file_size < needed:  # what lies behind it in the file is another member's
        raise ValueError(f"{path.name} is damaged: {chosen[0]} has {member.file_size} bytes, its shape {head.shape} needs {needed}")
    if member.compress_type == zipfile.ZIP_STORED and 0 not in head.shape:  # nothing cannot be mapped
        order: Any = "F" if head.fortran else "C"
        return np.memmap(path, head.dtype, "r", _begin(path, member) + head.end, head.shape, order)
    if head.fortran:
        raise ValueError(f"{path.name} is compressed by columns, so that its rows cannot be read one after the other: save it as .npy")
    return Unpacked(path, chosen[0], head)


def _head(archive: zipfile.ZipFile, name: str) -> Head:
    with archive.open(name) as stream:
        npy: Any = np.lib.format  # older stubs have no types for it
        read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        return Head(shape, fortran, dtype, stream.tell())


def _begin(path: Path, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: the header before them says how long it is."""
    with path.open("rb") as stream:
        stream.seek(member.header_offset + LOCAL - 4)
        name, extra = np.frombuffer(stream.read(4), "<u2")
    return int(member.header_offset + LOCAL + name + extra)


class Unpacked:
    """Rows of a compressed member, in their order: what is asked for again is unpacked again from the beginning."""

    def __init__(self, path: Path, name: str, head: Head) -> None:
        self.path, self.name, self.head = path, name, head
        self.shape, self.dtype = head.shape, head.dtype
        self._stream: Any = None
        self._at = 0  # the row that the stream stands at

    def __getitem__(self, rows: slice) -> np.ndarray[Any, Any]:
        begin, end, _ = rows.indices(self.shape[0])
        width = self.shape[1] * self.dtype.itemsize
        if self._stream is None or self._at != begin:
            self.close()
            self._stream = zipfile.ZipFile(self.path).open(self.name)  # noqa: SIM115  # until other rows are asked for
            self._stream.seek(self.head.end + begin * width)  # a stream that is unpacked reads its way there
        found = np.frombuffer(self._stream.read((end - begin) * width), self.dtype).reshape(-1, self.shape[1])
        if len(found) != end - begin:
            raise ValueError(f"{self.path.name} is damaged: {self.name} ends before row {end}")
        self._at = end
        return found

    def close(self) -> None:
        """Of the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_stream": None}
