"""Data read block by block: single-precision arrays, mapped files, HDF5, zarr, Parquet, .npy and .npz files."""

from __future__ import annotations

import functools
import math
import operator
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ksparse.data.design import BLOCK, Design, Work
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer
from ksparse.util.progress import NULL_BAR, Bar, bar
from ksparse.util.resources import map_row_chunks

MIN_ROWS = 4  # fewest rows of a block, however many columns: adding up costs one vector of n numbers per block
CACHED = 2**19  # entries converted to double precision at a time: they stay in the cache while they are used
NAMED = ("X", "A")  # names that select one of several tables of a .npz file
LOCAL = 30  # bytes of a zip member's header before its name

Tell = Callable[[int, float], None]  # with the number of the pass, and the fraction of the data that it has read


class Blocks(Design):
    """An object with `shape`, `dtype` and row slices; the next block is read while the present one is multiplied.

    `work` gets some rows in double precision, in memory that is reused for the next ones: its result must not be a view
    of them.
    """

    def __init__(self, source: Any, height: int | None = None, tell: Tell | None = None) -> None:
        super().__init__(source.shape, np.dtype(source.dtype))
        self.source, self._tell = source, tell
        chunks = getattr(source, "chunks", None)  # of h5py and zarr: partial chunks would be read more than once
        tall = int(chunks[0]) if isinstance(chunks, tuple) and isinstance(chunks[0], int) else 1
        self._in_memory = isinstance(source, np.ndarray) and not isinstance(source, np.memmap)
        height = height or max(MIN_ROWS, BLOCK // max(1, self.shape[1]))
        self.height = max(tall, height - height % tall)

    def each(self, work: Work) -> list[Any]:
        return [one for part in self._run(lambda blocks: [work(*block) for block in blocks]) for one in part]

    def total(self, work: Work) -> Any:
        """Add results one by one: each may have k·n numbers."""
        return _sum(self._run(lambda blocks: _sum(work(*block) for block in blocks)))

    def _run(self, collect: Callable[[Iterator[tuple[Any, slice]]], Any]) -> list[Any]:
        """Make one pass; return a list of results of `collect`: one, or one per thread for data in memory."""
        self.record_pass()
        m = self.shape[0]
        slices = [slice(begin, min(begin + self.height, m)) for begin in range(0, m, self.height)]
        if not self._in_memory:
            with bar(f"pass {self.passes} over the data", 1.0) as read:
                return [collect(self._in_double(self._read_ahead(slices), read))]

        def in_thread(part: slice) -> Any:
            return collect(self._in_double((self.source[rows], rows) for rows in slices[part]))

        return map_row_chunks(in_thread, len(slices))

    def _in_double(self, blocks: Iterable[tuple[Any, slice]], read: Bar = NULL_BAR) -> Iterator[tuple[Any, slice]]:
        """Yield some rows of each block at a time in double precision, all in the same memory."""
        few = min(self.height, max(MIN_ROWS, CACHED // self.shape[1]))
        place = np.empty((few, self.shape[1]))
        for block, rows in blocks:
            for begin in range(0, len(block), few):
                part = block[begin : begin + few]
                np.copyto(place[: len(part)], part)
                yield place[: len(part)], slice(rows.start + begin, rows.start + begin + len(part))
            read.update(rows.stop / self.shape[0])
            if self._tell is not None:
                self._tell(self.passes, rows.stop / self.shape[0])

    def _read_ahead(self, slices: list[slice]) -> Iterator[tuple[Any, slice]]:
        """Yield each block while a thread reads the next one."""
        mapped = isinstance(self.source, np.memmap)  # copied by the reader, else products would read the file
        places = [np.empty((slices[0].stop, self.shape[1]), self.source.dtype) if mapped else None for _ in range(2)]
        with ThreadPoolExecutor(1, thread_name_prefix="ksparse-read") as reader:
            ahead: Future[Any] = reader.submit(self._read, slices[0], places[0])
            for number, (rows, following) in enumerate(zip_longest(slices, slices[1:]), start=1):
                block = ahead.result()
                if following is not None:
                    ahead = reader.submit(self._read, following, places[number % 2])
                yield block, rows

    def _read(self, rows: slice, place: Vector | None) -> Any:
        """Return rows of the source, in `place` if given, so that memory is reused."""
        if place is None:
            return np.asarray(self.source[rows])
        block = place[: rows.stop - rows.start]
        np.copyto(block, self.source[rows])
        return block


def _sum(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator.iadd, parts)


class Head(NamedTuple):
    """Contents of a .npy header, and the position of its end."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    end: int


def npz(path: Path) -> Any:
    """Return the table of a .npz file: its only member with 2 axes, or the one called X or A."""
    with zipfile.ZipFile(path) as archive:
        heads = {name: _head(archive, name) for name in archive.namelist() if name.endswith(".npy")}
        tables = [name for name, head in heads.items() if len(head.shape) == 2]
        chosen = tables if len(tables) == 1 else [name for name in tables if name.removesuffix(".npy") in NAMED]
        if len(chosen) != 1:
            held = ", ".join(f"{name.removesuffix('.npy')} {head.shape}" for name, head in heads.items()) or "no arrays"
            found = f"one table, or one called X or A, but {path.name} holds {held}"
            raise ValueError(f"source must hold {found}: save the table you need as .npy")
        head, member = heads[chosen[0]], archive.getinfo(chosen[0])
    if head.dtype.hasobject:
        raise TypeError(f"source must hold numbers, but {path.name} holds Python objects")
    needed = head.end + math.prod(head.shape) * head.dtype.itemsize
    if member.file_size < needed:  # the bytes after it belong to another member
        held = f"{chosen[0]} has {member.file_size} bytes, its shape {head.shape} needs {needed}"
        raise ValueError(f"{path.name} is damaged: {held}")
    if member.compress_type == zipfile.ZIP_STORED and 0 not in head.shape:  # an empty array cannot be mapped
        order: Any = "F" if head.fortran else "C"
        return np.memmap(path, head.dtype, "r", _begin(path, member) + head.end, head.shape, order)
    if head.fortran:
        reason = "so that its rows cannot be read one after the other"
        raise ValueError(f"{path.name} is compressed by columns, {reason}: save it as .npy")
    return CompressedRows(path, chosen[0], head)


def _head(archive: zipfile.ZipFile, name: str) -> Head:
    with archive.open(name) as stream:
        npy: Any = np.lib.format  # older stubs have no types for it
        read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        return Head(shape, fortran, dtype, stream.tell())


def _begin(path: Path, member: zipfile.ZipInfo) -> int:
    """Return the position of a member's first byte, after a header of variable length."""
    with path.open("rb") as stream:
        stream.seek(member.header_offset + LOCAL - 4)
        name, extra = np.frombuffer(stream.read(4), "<u2")
    return int(member.header_offset + LOCAL + name + extra)


class CompressedRows:
    """Rows of a compressed member, read in order: reading earlier rows unpacks the member again from its beginning."""

    def __init__(self, path: Path, name: str, head: Head) -> None:
        self.path, self.name, self.head = path, name, head
        self.shape, self.dtype = head.shape, head.dtype
        self._stream: Any = None
        self._at = 0  # the next row of the stream

    def __getitem__(self, rows: slice) -> np.ndarray[Any, Any]:
        begin, end, _ = rows.indices(self.shape[0])
        width = self.shape[1] * self.dtype.itemsize
        if self._stream is None or self._at != begin:
            self.close()
            with zipfile.ZipFile(self.path) as archive:
                self._stream = archive.open(self.name)  # which keeps the file open
            self._close = weakref.finalize(self, self._stream.close)  # also if this object is in a reference cycle
            self._stream.seek(self.head.end + begin * width)  # unpacks everything before
        found = np.frombuffer(self._stream.read((end - begin) * width), self.dtype).reshape(-1, self.shape[1])
        if len(found) != end - begin:
            raise ValueError(f"{self.path.name} is damaged: {self.name} ends before row {end}")
        self._at = end
        return found

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._close()
            self._stream = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_stream": None, "_close": None}


def blocks(source: Any, height: int | None = None, tell: Tell | None = None) -> Blocks:
    """Return a data matrix that is read from disk, one block of rows after the other, each time it is needed.

    Parameters
    ----------
    source : str, Path, list of them, or object
        A .npy, .npz or Parquet file, a folder of them (parts of one table, ordered by name), a list of such files, or
        an object with `shape`, `dtype` and row slices (h5py, zarr, a memory-mapped array, your own). From a .npz file
        the only table is read, or the one called X or A; compressed tables are unpacked in each pass.
    height : int or None, default=None
        Rows in a block; None for about 4 million numbers.
    tell : callable or None, default=None
        Called after each block with the number of the pass and the fraction of the data that it has read.

    Returns
    -------
    Design
        Data for losses and estimators.

    Raises
    ------
    FileNotFoundError
        If the file or folder does not exist.
    ValueError, TypeError
        If the folder holds no table, a file is damaged, the parts differ in their columns, or the source is invalid,
        has no rows, or holds anything but numbers.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> A = ks.blocks(np.arange(6.0).reshape(3, 2), height=2)
    >>> A.shape
    (3, 2)
    """
    height = None if height is None else check_integer(height, "height", 1)
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"source names {path}, which does not exist")
        files = sorted(one for one in path.iterdir() if one.suffix in _READERS) if path.is_dir() else [path]
        if not files:
            raise ValueError(f"source names the folder {path}, which holds no .npy, .npz or .parquet file")
        source = FileTable(files)
    elif isinstance(source, list | tuple):
        source = FileTable([Path(one) for one in source])
    elif not all(hasattr(source, part) for part in ("shape", "dtype", "__getitem__")):
        needed = "a file, a folder, a list of files or an object with shape, dtype and row slices"
        raise TypeError(f"source must be {needed}, got {type(source)}")
    if len(source.shape) != 2:
        raise ValueError(f"source must have 2 axes, got shape {tuple(source.shape)}")
    if 0 in source.shape:
        raise ValueError(f"source must hold a row and a column at least, got shape {tuple(source.shape)}")
    if np.dtype(source.dtype).kind in "cOSUMm":
        raise TypeError(f"source must hold real numbers, got {source.dtype}")
    return Blocks(source, height, tell)


class FileTable:
    """Files that hold the rows of one table, opened when they are read."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self._open: tuple[Path, Any] | None = None  # the file read last; a compressed one is read on from there
        for file in files:
            if file.suffix not in _READERS:
                raise ValueError(f"source must name .npy, .npz or .parquet files, got {file.name}")
        if not files:
            raise ValueError("source must name one file at least, got an empty list")
        shapes, named, types = zip(*map(_outline, files), strict=True)
        if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) != 1:
            raise ValueError(f"source must name tables of the same columns, got shapes {', '.join(map(str, shapes))}")
        if any(names != named[0] for names in named):
            differ = f"{files[0].name} and others name theirs differently"
            raise ValueError(f"source must name tables of the same columns, but {differ}")
        self.names: list[str] | None = named[0]
        self._edges = np.concatenate([[0], np.cumsum([shape[0] for shape in shapes])])
        self.shape = int(self._edges[-1]), int(shapes[0][1])
        if 0 in self.shape:
            held = files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name} together"
            raise ValueError(f"source must hold a row and a column at least, got shape {self.shape} in {held}")
        self.dtype = np.result_type(*types)

    def __getitem__(self, rows: slice) -> Any:
        begin, end, _ = rows.indices(self.shape[0])
        found = []
        for file, (low, high) in zip(self.files, pairwise(self._edges), strict=True):
            if low < end and begin < high:
                with _naming(file):
                    if self._open is None or self._open[0] != file:
                        self._open = file, _READERS[file.suffix](file)
                    found.append(self._open[1][max(begin, low) - low : min(end, high) - low])
        return np.concatenate(found) if len(found) != 1 else found[0]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_open": None}


def _outline(file: Path) -> tuple[tuple[int, ...], list[str] | None, np.dtype[Any]]:
    """Return the shape, the names of columns if there are any, and the dtype of a file."""
    with _naming(file):
        table = _READERS[file.suffix](file)
    if np.dtype(table.dtype).kind not in "biuf":
        raise TypeError(f"source must hold real numbers, but {file.name} holds {table.dtype}")
    return table.shape, getattr(table, "names", None), table.dtype


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Name the file in errors: readers raise many types for a damaged file, most without its name."""
    try:
        yield
    except (FileNotFoundError, PermissionError):  # these name it
        raise
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"source names {file}, which cannot be read: {error or type(error).__name__}") from error


class _Parquet:
    """The rows of a Parquet file, by row groups."""

    def __init__(self, file: Path) -> None:
        import pyarrow.parquet as parquet

        self._file = parquet.ParquetFile(file)
        meta = self._file.metadata
        self._edges = np.concatenate([[0], np.cumsum([meta.row_group(i).num_rows for i in range(meta.num_row_groups)])])
        self.shape = meta.num_rows, meta.num_columns
        self.names = list(self._file.schema_arrow.names)
        types = {np.dtype(field.type.to_pandas_dtype()) for field in self._file.schema_arrow}
        strange = [one for one in types if one.kind not in "biuf"]  # types that have no common type with numbers
        self.dtype = strange[0] if strange else np.result_type(*types)

    def __getitem__(self, rows: slice) -> Any:
        low, high = int(rows.start), int(rows.stop)
        groups = [i for i, (begin, end) in enumerate(pairwise(self._edges)) if begin < high and low < end]
        table = self._file.read_row_groups(groups)
        first = int(self._edges[groups[0]])
        return np.column_stack([table.column(j).to_numpy()[low - first : high - first] for j in range(self.shape[1])])


_npy = functools.partial(np.load, mmap_mode="r", allow_pickle=False)
_READERS: dict[str, Any] = {".npy": _npy, ".npz": npz, ".parquet": _Parquet}
