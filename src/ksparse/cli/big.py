"""What `ksparse regress` explains a target by: a table in memory, or one that is read from disk block by block."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.exits import InputError
from ksparse.cli.tables import choose, dropped, numbers, read_table, refuse_unnamed
from ksparse.data.blocks import blocks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Data:
    """A target and the features beside it."""

    target: pd.Series
    features: Any  # whose `columns` are their names
    numbers: Callable[[], Any]  # the features as a matrix
    out: list[int]  # features that may not be used: of a table on disk the target is one
    rows: int

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return list(self.features.columns)


def is_big(path: Path) -> bool:
    """Whether a file is read by blocks: a .npy array, or a folder of .npy or Parquet parts, unless its name says that it is a table."""
    return path.suffix.lower() not in (".csv", ".tsv", ".npz", ".gz") if path.is_dir() else path.suffix.lower() == ".npy"


def read_data(options: argparse.Namespace) -> Data:
    """The file that a command names, and the target in it or in a file of its own."""
    return _from_blocks(options) if is_big(options.file) else _from_table(options)


def _from_table(options: argparse.Namespace) -> Data:
    table = read_table(options.file)
    (name,) = choose(table, options.target, "--target")[:1] or [""]
    table = dropped(table, options.drop, options.file)
    if name not in table.columns:
        raise InputError(f"--drop: {name!r} is the target")
    features = refuse_unnamed(table.drop(columns=name))
    if features.columns.empty:
        raise InputError(f"{options.file} has no column beside the target")
    return Data(table[name], features, lambda: numbers(features), [], len(table))


def _from_blocks(options: argparse.Namespace) -> Data:
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("reading tables needs pandas: pip install 'ksparse[cli]'") from error
    if not options.file.exists():
        raise InputError(f"{options.file} does not exist")
    try:
        design = blocks(options.file)
    except ImportError as error:
        raise InputError("reading Parquet needs pyarrow: pip install 'ksparse[cli]'") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{options.file}: {error}") from error
    m, n = design.shape
    names = getattr(design.source, "names", None) or [str(j) for j in range(n)]
    features = SimpleNamespace(columns=names)
    out = [names.index(name) for name in choose(features, options.drop, "--drop")]
    if options.target.lower().endswith(".npy"):
        y, name = _vector(Path(options.target), m), Path(options.target).stem
    else:
        (name,) = choose(features, options.target, "--target")[:1] or [""]
        place = names.index(name) if name in names else -1
        if place < 0:
            raise InputError("--target must name a column, or a .npy file with one number per row")
        if place in out:
            raise InputError(f"--drop: {name!r} is the target")
        y, out = np.asarray(design.columns(np.array([place])))[:, 0], [*out, place]
    if len(out) >= n:
        raise InputError(f"{options.file} has no column beside the target")
    return Data(pd.Series(y, name=name), features, lambda: design, out, m)


def _vector(path: Path, rows: int) -> np.ndarray[Any, Any]:
    """The target, in a file of its own."""
    try:
        y = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"--target: {path} cannot be read: {error}") from error
    if y.shape not in ((rows,), (rows, 1)) or y.dtype.kind not in "iubf":
        raise InputError(f"--target: {path} must hold one number per row, {rows}, got shape {y.shape} of {y.dtype}")
    return np.ravel(y)
