"""A table in several files, or in one: rows of .npy, .npz and Parquet parts, one after the other."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.base.checks import check_integer
from ksparse.linalg.designs.blocks import Blocks
from ksparse.linalg.designs.npz import npz

Tell = Callable[[int, float], None]  # of the pass over the data, and the share of them that it has read


def blocks(source: Any, height: int | None = None, tell: Tell | None = None) -> Blocks:
    """A data matrix that is read from disk, block of rows by block of rows, each time it is needed.

    Parameters
    ----------
    source : str, Path, list of them, or object
        A .npy, .npz or Parquet file, a folder of them (its parts in the order of their names), a list of such files, or an object with
        `shape`, `dtype` and row slices (h5py, zarr, a memory-mapped array, your own). Of a .npz file its only table, or the one called X
        or A; what is compressed is unpacked anew in each pass.
    height : int or None, default=None
        Rows in a block; None for some 4 million numbers.
    tell : callable or None, default=None
        Called after each block with the number of the pass and the share of the data that it has read.

    Returns
    -------
    Design
        To be given to losses and estimators as data.

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder.
    ValueError, TypeError
        If the folder holds no table, a file is damaged, the parts differ in their columns, or the source is none, holds no rows, or
        something else than numbers.

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
        source = Parts(files)
    elif isinstance(source, list | tuple):
        source = Parts([Path(one) for one in source])
    elif not all(hasattr(source, part) for part in ("shape", "dtype", "__getitem__")):
        raise TypeError(
            f"source must be a file, a folder, a list of files or an object with shape, dtype and row slices, got {type(source)}"
        )
    if len(source.shape) != 2:
        raise ValueError(f"source must have 2 axes, got shape {tuple(source.shape)}")
    if 0 in source.shape:
        raise ValueError(f"source must hold a row and a column at least, got shape {tuple(source.shape)}")
    if np.dtype(source.dtype).kind in "cOSUMm":
        raise TypeError(f"source must hold real numbers, got {source.dtype}")
    return Blocks(source, height, tell)


class Parts:
    """Files that hold the rows of one table, opened when they are read."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self._open: tuple[Path, Any] | None = None  # the last one that was read
        for file in files:
            if file.suffix not in _READERS:
                raise ValueError(f"source must name .npy, .npz or .parquet files, got {file.name}")
        if not files:
            raise ValueError("source must name one file at least, got an empty list")
        shapes, named, types = zip(*map(_outline, files), strict=True)
        if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) != 1:
            raise ValueError(f"source must name tables of the same columns, got shapes {', '.join(map(str, shapes))}")
        if any(names != named[0] for names in named):
            raise ValueError(f"source must name tables of the same columns, but {files[0].name} and others name theirs differently")
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
                with _telling(file):
                    found.append(self._reader(file)[max(begin, low) - low : min(end, high) - low])
        return np.concatenate(found) if len(found) != 1 else found[0]

    def _reader(self, file: Path) -> Any:
        """Kept from block to block: a compressed file is read on where it was."""
        if self._open is None or self._open[0] != file:
            self._open = file, _READERS[file.suffix](file)
        return self._open[1]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_open": None}


def _outline(file: Path) -> tuple[tuple[int, ...], list[str] | None, np.dtype[Any]]:
    """Shape, names of columns where there are any, and type of the numbers of a file."""
    with _telling(file):
        table = _READERS[file.suffix](file)
    if np.dtype(table.dtype).kind not in "biuf":
        raise TypeError(f"source must hold real numbers, but {file.name} holds {table.dtype}")
    return table.shape, getattr(table, "names", None), table.dtype


@contextmanager
def _telling(file: Path) -> Iterator[None]:
    """Which file it is that cannot be read: readers raise all sorts on one that is damaged, and few of them say."""
    try:
        yield
    except (FileNotFoundError, PermissionError):  # these do
        raise
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"source names {file}, which cannot be read: {error or type(error).__name__}") from error


def _npy(file: Path) -> Any:
    return np.load(file, mmap_mode="r", allow_pickle=False)


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
        strange = [one for one in types if one.kind not in "biuf"]  # which have no type in common with numbers
        self.dtype = strange[0] if strange else np.result_type(*types)

    def __getitem__(self, rows: slice) -> Any:
        low, high = int(rows.start), int(rows.stop)
        groups = [i for i, (begin, end) in enumerate(pairwise(self._edges)) if begin < high and low < end]
        table = self._file.read_row_groups(groups)
        first = int(self._edges[groups[0]])
        return np.column_stack([table.column(j).to_numpy()[low - first : high - first] for j in range(self.shape[1])])


_READERS: dict[str, Any] = {".npy": _npy, ".npz": npz, ".parquet": _Parquet}
