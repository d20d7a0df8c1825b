"""Tables from CSV, Parquet or NPZ files; errors name the column and the row (row 1 is the first below the header)."""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.output import STANDARD, InputError, bare
from ksparse.util.arrays import Vector
from ksparse.util.checks import LARGEST

if TYPE_CHECKING:
    import pandas as pd

KINDS = ".csv, .csv.gz, .tsv, .parquet or .npz"
NAME_ARRAYS = ("names", "columns", "features", "codes")  # keys of an NPZ file
MARKS = {b"\x1f\x8b": ".csv.gz", b"PAR1": ".parquet", b"PK\x03\x04": ".npz"}  # first bytes of binary files
UNNAMED = "Unnamed: "  # prefix of the names that pandas gives to columns without a heading
DATE_WORDS = ("date", "dates", "datetime", "timestamp")  # words in the name of a column of dates
ADVICE = "fill or remove them, or leave the column out with --drop"
HINT = "if these are not dates, name another column with --dates"


def number(text: str) -> float:
    """Return a number, or a percentage as a fraction; raise ValueError for other text."""
    text = text.strip()
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def amount(text: str) -> float:
    """Return the value of an option that is a number or a percentage."""
    try:
        return number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number such as 0.2 or 20%, got {text!r}") from None


def nonnegative(text: str) -> float:
    """Return the value of an option that is a finite number or percentage of at least 0."""
    value = amount(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be >= 0 and finite, got {text}")
    return value


def weight(text: str) -> float:
    """Return the value of an option that is a weight; a weight above 1 must be written as a percentage."""
    value = amount(text)
    if doubt := doubtful(text, value):
        raise argparse.ArgumentTypeError(doubt)
    return value


def doubtful(text: str, value: float) -> str:
    """Return how to write a weight above 1 that may be meant as a percentage; "" for other weights."""
    if not 1.0 < value < math.inf or "%" in text:
        return ""
    return f"{text} is {100.0 * value:g} % of the portfolio: write {value:g}% or {100.0 * value:g}%, whichever is meant"


def split(text: str) -> list[str]:
    """Return the parts of an option separated by commas; double quotes protect commas."""
    return next(csv.reader([text], skipinitialspace=True), [])


def read_table(path: Path, as_text: bool = False) -> pd.DataFrame:
    """Return a file as a table with distinct column names; a Parquet index other than row numbers is kept.

    as_text : keep the cells of a text file as written, since 0700 and NA may be names.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("reading tables needs pandas: pip install 'ksparse[cli]'") from error
    if path == STANDARD:
        return _from_stdin(as_text)
    if not path.is_file():
        raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    name = path.name.lower()
    try:
        if name.endswith(".npz"):
            table = _from_npz(path)
        elif name.endswith(".parquet"):
            table = pd.read_parquet(path)
        elif name.endswith((".csv", ".csv.gz", ".tsv")):
            table = _from_csv(path, "\t" if name.endswith(".tsv") else ",", as_text)
        else:
            raise InputError(f"{path} must be a {KINDS} file")
    except InputError:
        raise
    except ImportError as error:
        raise InputError("reading Parquet needs pyarrow: pip install 'ksparse[cli]'") from error
    except Exception as error:  # readers raise any exception for corrupt files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read: {reason}") from error
    table.columns = [str(column) for column in table.columns]
    _refuse_repeated(list(table.columns), path)
    if table.empty:
        raise InputError(f"{path} holds no rows below its header" if len(table.columns) else f"{path} is empty")
    return table


def _from_stdin(as_text: bool) -> pd.DataFrame:
    """Return the table on standard input, whose kind is recognised by its first bytes and tabs in the first line."""
    content = sys.stdin.buffer.read()
    head = content.partition(b"\n")[0]
    text = ".tsv" if b"\t" in head and b"," not in head else ".csv"
    kind = next((suffix for mark, suffix in MARKS.items() if content.startswith(mark)), text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{kind}"
        path.write_bytes(content)
        try:
            return read_table(path, as_text)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "standard input")) from None


def _from_csv(path: Path, separator: str, as_text: bool) -> pd.DataFrame:
    """Return a text table; refuse a first row longer than the header, which pandas would shift."""
    import pandas as pd

    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = filter(None, csv.reader(file, delimiter=separator, skipinitialspace=True))
        header, first = next(lines, []), next(lines, [])
    if not header:
        raise InputError(f"{path} is empty")
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{path} seems to be separated by semicolons: save it with commas, or as .tsv with tabs")
    if len(first) > len(header):
        raise InputError(f"{path}: row 1 has {len(first)} fields, the header {len(header)}")
    _refuse_repeated([name for name in header if name], path)  # pandas would rename them
    how: dict[str, Any] = {"dtype": str, "keep_default_na": False} if as_text else {}
    return pd.read_csv(path, sep=separator, skipinitialspace=True, index_col=False, **how)


def _from_npz(path: Path) -> pd.DataFrame:
    """Return the columns of the 2-D array, plus the 1-D arrays with one entry per row.

    A text array with one entry per column of the 2-D array gives the names.
    """
    import pandas as pd

    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    arrays = {key: np.char.decode(a, "utf-8") if a.dtype.kind == "S" else a for key, a in arrays.items()}
    tables = [key for key, array in arrays.items() if array.ndim == 2]
    vectors = {key: array for key, array in arrays.items() if array.ndim == 1}
    if len(tables) > 1 or not (tables or vectors):
        shapes = ", ".join(f"{key} of shape {array.shape}" for key, array in arrays.items()) or "nothing"
        raise InputError(f"{path} must hold one 2-D array, or 1-D arrays of one length, got {shapes}")
    if not tables:
        rows = max(array.size for array in vectors.values())
        return pd.DataFrame({key: array for key, array in vectors.items() if array.size == rows})
    X = arrays[tables[0]]
    labels = [key for key, array in vectors.items() if array.dtype.kind == "U" and array.size == X.shape[1]]
    likely = [key for key in labels if key.lower() in NAME_ARRAYS] or (labels if X.shape[0] != X.shape[1] else [])
    names = [str(label) for label in vectors[likely[0]]] if likely else [f"{tables[0]}{j}" for j in range(X.shape[1])]
    columns = {key: array for key, array in vectors.items() if array.size == X.shape[0] and key not in likely[:1]}
    _refuse_repeated([*columns, *names], path)
    return pd.concat([pd.DataFrame(columns), pd.DataFrame(X, columns=names)], axis=1)


def _refuse_repeated(names: list[str], path: Path) -> None:
    if len(set(names)) < len(names):
        repeated = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"{path} has more than one column named {repeated!r}")


def refuse_unnamed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table; refuse a first column without a heading, which is often a saved row index."""
    first = str(table.columns[0]) if len(table.columns) else ""
    if first.startswith(UNNAMED):
        found = "the first column has no heading and may be a saved row index"
        raise InputError(f"{found}: name it, or use --drop '{first}'")
    return table


def choose(columns: Sequence[str], text: str, option: str) -> list[str]:
    """Return the columns named by an option: one name, or several separated by commas."""
    if not text or text in columns:
        return [text] if text else []
    found = []
    for part in split(text):
        name = part if part in columns else part.strip()
        if name not in columns:
            known = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
            raise InputError(f"{option}: there is no column {name!r}; the columns are {known}")
        found.append(name)
    return list(dict.fromkeys(found))


def dropped(table: pd.DataFrame, text: str, path: Path) -> pd.DataFrame:
    """Return the table without the columns named by --drop."""
    left = table.drop(columns=choose(list(table.columns), text, "--drop"))
    if left.columns.empty:
        raise InputError(f"--drop leaves no column of {path}")
    return left


def pairs(path: Path, first: str, what: str, known: Collection[str], column: int = 1) -> dict[str, str]:
    """Return the cells of a column, by default the second, by the names in the first column; "" for missing cells."""
    table = read_table(path, as_text=True)
    if len(table.columns) <= column:
        needed = f"{('two', 'three')[column - 1]} columns, {first} and {what} among them"
        raise InputError(f"{path} must have {needed}, got {len(table.columns)}")
    found: dict[str, str] = {}
    known = frozenset(known)
    for row, (cell, value) in enumerate(zip(texts(table.iloc[:, 0]), texts(table.iloc[:, column]), strict=True), 1):
        name = cell if cell in known else bare(cell)
        if not name:
            raise InputError(f"{path} has no {first} in row {row}")
        if name in found:
            raise InputError(f"{path} names {name!r} twice")
        found[name] = value
    return found


def texts(column: pd.Series) -> list[str]:
    """Return the cells as written, "" for missing ones."""
    return ["" if gone else str(cell).strip() for cell, gone in zip(column, column.isna(), strict=True)]


def at_most(k: int, n: int, what: str, note: Callable[[str], None], least: int = 1) -> int:
    """Return -k, which must be at least `least`, reduced to n with a note if it is larger."""
    if k < least:
        raise InputError(f"-k must be at least {least}, got {k}")
    if k > n:
        note(f"-k {k} is no restriction, there {'is' if n == 1 else 'are'} {n} {what}{'' if n == 1 else 's'}")
    return min(k, n)


def refuse_missing(column: pd.Series, advice: str) -> None:
    """Refuse a column with missing values."""
    missing = column.isna().to_numpy()
    if missing.any():
        count = f"{missing.sum()} missing value{'s' if missing.sum() > 1 else ''}"
        raise InputError(f"column {column.name!r} has {count}, the first in row {missing.argmax() + 1}: {advice}")


def numbers(table: pd.DataFrame, advice: str = ADVICE, hint: str = "") -> Vector:
    """Return the cells as float64; refuse text, missing values, infinities and numbers that are too large.

    advice, hint : what to do about missing values, and about text.
    """
    import pandas as pd

    values = np.empty(table.shape)
    for place, name in enumerate(table.columns):
        column = table[name]
        refuse_missing(column, advice)
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            cells, column = column, pd.to_numeric(column.astype(str), errors="coerce")
            if column.isna().any():
                row = int(column.isna().to_numpy().argmax())
                held = f"row {row + 1} holds {str(cells.iloc[row])!r}"
                raise InputError(f"column {name!r} is not numeric: {held}; encode it or leave it out with --drop{hint}")
        if np.iscomplexobj(column):
            raise InputError(f"column {name!r} holds complex numbers")
        values[:, place] = column.to_numpy(dtype=float)
    wrong = np.argwhere(~(np.abs(values) <= LARGEST))
    if wrong.size:
        infinite = wrong[np.isinf(values[tuple(wrong.T)])]
        row, place = map(int, (infinite if infinite.size else wrong)[0])
        name, value = table.columns[place], values[row, place]
        if math.isinf(value):
            raise InputError(f"column {name!r} is infinite in row {row + 1}")
        limit = f"absolute values must not exceed {LARGEST:g}; rescale the data"
        raise InputError(f"column {name!r} holds {value:g} in row {row + 1}: {limit}")
    return values


def split_dates(table: pd.DataFrame, named: str | None) -> tuple[list[str] | None, pd.DataFrame]:
    """Return the dates, if there are any, and the other columns; dates must be distinct and ascending."""
    import pandas as pd

    if not isinstance(table.index, pd.RangeIndex) and named is None:  # dates in Parquet files
        table = table.reset_index(names=str(table.index.name or "index"))
        column: str | None = str(table.columns[0])
    else:
        column = _find_dates(table) if named is None else choose(list(table.columns), named, "--dates")[0]
    rest = table if column is None else table.drop(columns=column)
    if len(rest.columns) and str(rest.columns[0]).startswith(UNNAMED):  # a saved row index
        rest = rest.drop(columns=rest.columns[0])
    if column is None:
        return None, rest
    text = [str(value) for value in table[column]]
    _check_order(_parse_dates(table[column]), text, column)
    return text, rest


def _check_order(dates: pd.Series, text: list[str], column: str) -> None:
    """Refuse cells that are not dates, and dates that are repeated or descending."""
    import pandas as pd

    if dates.isna().any():
        row = int(dates.isna().to_numpy().argmax())
        held = f"row {row + 1} holds {text[row]!r}"
        raise InputError(f"column {column!r} should hold dates: {held}; name another with --dates")
    repeated = dates.duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        first = int((dates == dates.iloc[row]).to_numpy().argmax())
        rows = f"rows {first + 1} and {row + 1}"
        raise InputError(f"duplicate date {text[row]} in column {column!r}, in {rows}; {HINT}")
    back = np.flatnonzero(~(dates.diff().iloc[1:] > pd.Timedelta(0)).to_numpy())
    if back.size:
        row = int(back[0]) + 1
        order = f"row {row + 1} ({text[row]}) comes after row {row} ({text[row - 1]})"
        raise InputError(f"the dates in column {column!r} must ascend: {order}; {HINT}")


def _find_dates(table: pd.DataFrame) -> str | None:
    """Return the first column if its name or its cells are dates; refuse another column with the name of dates."""
    first, *others = map(str, table.columns)
    if first.startswith(UNNAMED):
        found = not _parse_dates(table[first]).isna().any()
    else:
        found = _called_dates(first) or _may_be_dates(table[first])
    if found:
        return first
    stray = next(filter(_called_dates, others), None)
    if stray is not None:
        raise InputError(f"column {stray!r} is called dates but is not the first: name it with --dates, or use --drop")
    return None


def _called_dates(name: str) -> bool:
    return any(word in DATE_WORDS for word in name.lower().replace("_", " ").replace("-", " ").split())


def _may_be_dates(column: pd.Series) -> bool:
    """Return whether the cells are dates, text other than numbers, or ascending integers that read as dates."""
    if column.dtype.kind == "M":
        return True
    if column.dtype.kind in "OU" or str(column.dtype).startswith(("str", "string", "category")):
        with suppress(ValueError):
            float(str(column.iloc[0]).replace(",", "").replace("'", "").replace(" ", ""))  # 1,000 or 1'000
            return False
        return True
    ascending = column.dtype.kind in "iu" and (np.diff(column.to_numpy()) > 0).all()
    return bool(ascending and not _parse_dates(column).isna().any())


def _parse_dates(column: pd.Series) -> pd.Series:
    """Return dates of any common format, in UTC; NaT for cells that are not dates."""
    import pandas as pd

    if column.dtype.kind == "f" and (column % 1 == 0).all() and (column.abs() < 1e9).all():
        column = column.astype(np.int64)  # 20200102.0
    if column.dtype.kind in "iu":
        text = column.astype(str)
        lengths = set(text.str.len())
        if lengths == {8} or (lengths == {4} and column.between(1800, 2200).all()):
            form = "%Y%m%d" if lengths == {8} else "%Y"
            return pd.to_datetime(text, format=form, errors="coerce", utc=True)
    if column.dtype.kind in "iufbc":  # a price, though pandas would read it as nanoseconds since 1970
        return pd.Series(pd.NaT, index=column.index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the order of day and month
        for options in ({}, {"dayfirst": True}, {"format": "mixed"}, {"format": "mixed", "dayfirst": True}):
            dates = pd.to_datetime(column, errors="coerce", utc=True, **options)
            if not dates.isna().any():
                break
    return dates
