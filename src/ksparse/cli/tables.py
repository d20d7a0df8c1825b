"""Tables from CSV, Parquet or NPZ files, checked cell by cell: a message names the column and the row."""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.output import InputError, bare
from ksparse.util.checks import LARGEST

if TYPE_CHECKING:
    import pandas as pd


def number(text: str) -> float:
    """Return a number, or a percentage as a share of 1; a ValueError where the text is neither."""
    text = text.strip()
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def amount(text: str) -> float:
    """Return the value of an option that is a number or a percentage."""
    try:
        return number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number such as 0.2 or 20%, got {text!r}") from None


def weight(text: str) -> float:
    """Return the value of an option that is a weight; one above 1 must be written as a percentage."""
    value = amount(text)
    if doubt := doubtful(text, value):
        raise argparse.ArgumentTypeError(doubt)
    return value


def doubtful(text: str, value: float) -> str:
    """Say how to write a weight above 1 that may be meant as a percentage; "" for any other."""
    if not 1.0 < value < math.inf or "%" in text:
        return ""
    return f"{text} is {100.0 * value:g} % of the portfolio: write {value:g}% or {100.0 * value:g}%, whichever is meant"


KINDS = ".csv, .csv.gz, .tsv, .parquet or .npz"
NAME_ARRAYS = ("names", "columns", "features", "codes")  # of an NPZ file
MARKS = {b"\x1f\x8b": ".csv.gz", b"PAR1": ".parquet", b"PK\x03\x04": ".npz"}  # how the files that are no text begin
UNNAMED = "Unnamed: "  # how a column without a heading is called


def read_table(path: Path, as_text: bool = False) -> pd.DataFrame:
    """The file as a table with distinct column names; a Parquet index that is more than row numbers stays the index.

    as_text : whether the cells of a text file stay as they are written: 0700 and NA may be names.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("reading tables needs pandas: pip install 'ksparse[cli]'") from error
    if path == Path("-"):
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
    except Exception as error:  # readers raise all sorts on a file that is not what its name says
        raise InputError(
            f"{path} cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error
    table.columns = [str(column) for column in table.columns]
    refuse_repeated(list(table.columns), path)
    if table.empty:
        raise InputError(f"{path} holds no rows below its header" if len(table.columns) else f"{path} is empty")
    return table


def _from_stdin(as_text: bool) -> pd.DataFrame:
    """The table that comes in by standard input: what kind it is its first bytes say, and tabs in its first line."""
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
    """The rows, whose number of fields must be that of the header: longer ones would shift the columns under it."""
    import pandas as pd

    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter=separator, skipinitialspace=True)
        header = next((line for line in lines if line), [])
        first = next((line for line in lines if line), [])
    if not header:
        raise InputError(f"{path} is empty")
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{path} seems to be separated by semicolons: save it with commas, or as .tsv with tabs")
    if len(first) > len(header):
        raise InputError(f"{path}: row 1 has {len(first)} fields, the header {len(header)}")
    refuse_repeated([name for name in header if name], path)  # the reader would rename them
    how: dict[str, Any] = {"dtype": str, "keep_default_na": False} if as_text else {}
    return pd.read_csv(path, sep=separator, skipinitialspace=True, index_col=False, **how)


def _from_npz(path: Path) -> pd.DataFrame:
    """Columns of a 2-D array, named by a text array of that length where there is one, and 1-D arrays of as many entries as it has rows."""
    import pandas as pd

    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    arrays = {
        key: np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array for key, array in arrays.items()
    }
    wide = [key for key, array in arrays.items() if array.ndim == 2]
    flat = {key: array for key, array in arrays.items() if array.ndim == 1}
    if len(wide) > 1 or not (wide or flat):
        shapes = ", ".join(f"{key} of shape {array.shape}" for key, array in arrays.items()) or "nothing"
        raise InputError(f"{path} must hold one 2-D array, or 1-D arrays of one length, got {shapes}")
    if not wide:
        rows = max(array.size for array in flat.values())
        return pd.DataFrame({key: array for key, array in flat.items() if array.size == rows})
    X = arrays[wide[0]]
    labels = [key for key, array in flat.items() if array.dtype.kind == "U" and array.size == X.shape[1]]
    chosen = next(
        (key for key in labels if key.lower() in NAME_ARRAYS),
        next((key for key in labels if X.shape[0] != X.shape[1]), None),
    )
    names = [f"{wide[0]}{j}" for j in range(X.shape[1])] if chosen is None else [str(label) for label in flat[chosen]]
    columns = {key: array for key, array in flat.items() if array.size == X.shape[0] and key != chosen}
    refuse_repeated([*columns, *names], path)
    return pd.concat([pd.DataFrame(columns), pd.DataFrame(X, columns=names)], axis=1)


def refuse_repeated(names: list[str], path: Path) -> None:
    """Two columns of one name cannot be told apart."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{path} has more than one column named {name!r}")
        seen.add(name)


def refuse_unnamed(table: pd.DataFrame) -> pd.DataFrame:
    """A first column without a heading is a saved row index more often than a feature."""
    first = str(table.columns[0]) if len(table.columns) else ""
    if first.startswith(UNNAMED):
        raise InputError(
            f"the first column has no heading, like a saved row index: give it one, or leave it out with --drop '{first}'"
        )
    return table


def choose(table: pd.DataFrame, text: str, option: str) -> list[str]:
    """The columns that an option names: one name, or several separated by commas (in double quotes where a name has a comma)."""
    if not text or text in table.columns:
        return [text] if text else []
    found = []
    for part in next(csv.reader([text], skipinitialspace=True)):
        name = part if part in table.columns else part.strip()
        if name not in table.columns:
            known = ", ".join(table.columns[:8]) + (", ..." if len(table.columns) > 8 else "")
            raise InputError(f"{option}: there is no column {name!r}; the columns are {known}")
        found.append(name)
    return list(dict.fromkeys(found))


def dropped(table: pd.DataFrame, text: str, path: Path) -> pd.DataFrame:
    """The table without the columns that --drop names; some must be left."""
    left = table.drop(columns=choose(table, text, "--drop"))
    if left.columns.empty:
        raise InputError(f"--drop leaves no column of {path}")
    return left


def pairs(path: Path, first: str, what: str, known: Collection[str], column: int = 1) -> dict[str, str]:
    """A column of a table, by default the second, by the names in its first; both as they are written, "" for what is missing."""
    table = read_table(path, as_text=True)
    if len(table.columns) <= column:
        raise InputError(
            f"{path} must have {('two', 'three')[column - 1]} columns, {first} and {what} among them, got {len(table.columns)}"
        )
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
    """The cells as they are written, "" for those that are missing."""
    return ["" if gone else str(cell).strip() for cell, gone in zip(column, column.isna(), strict=True)]


def at_most(k: int, n: int, what: str, note: Callable[[str], None], least: int = 1) -> int:
    """Return -k, which must not be below `least`; more than there are is no restriction, and a note says so."""
    if k < least:
        raise InputError(f"-k must be at least {least}, got {k}")
    if k > n:
        note(f"-k {k} is no restriction, there {'is' if n == 1 else 'are'} {n} {what}{'' if n == 1 else 's'}")
    return min(k, n)


def numbers(
    table: pd.DataFrame, advice: str = "fill or remove them, or leave the column out with --drop", hint: str = ""
) -> np.ndarray[Any, Any]:
    """The cells as float64; text, missing values and infinities are refused by column and row (the first below the header is row 1).

    advice, hint : what else to do about missing values, and about text.
    """
    import pandas as pd

    columns = {}
    for name in table.columns:
        column = table[name]
        missing = column.isna().to_numpy()
        if missing.any():
            count, row = int(missing.sum()), int(missing.argmax()) + 1
            raise InputError(
                f"column {name!r} has {count} missing value{'s' if count > 1 else ''}, the first in row {row}: {advice}"
            )
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            parsed = pd.to_numeric(column.astype(str), errors="coerce")
            if parsed.isna().any():
                row = int(parsed.isna().to_numpy().argmax())
                held = str(column.iloc[row])
                what = f"encode it, or leave it out with --drop{hint}"
                raise InputError(f"column {name!r} is not numeric: row {row + 1} holds {held!r}; {what}")
            column = parsed
        if np.iscomplexobj(column):
            raise InputError(f"column {name!r} holds complex numbers")
        columns[name] = column.to_numpy(dtype=float)
    values = np.column_stack(list(columns.values())) if columns else np.empty((len(table), 0))
    if not np.isfinite(values).all():
        row, place = (int(i[0]) for i in np.nonzero(~np.isfinite(values)))
        raise InputError(f"column {table.columns[place]!r} is infinite in row {row + 1}")
    if values.size and max(values.max(), -values.min()) > LARGEST:
        row, place = (int(i[0]) for i in np.nonzero(np.abs(values) > LARGEST))
        held = f"{values[row, place]:g} in row {row + 1}"
        raise InputError(
            f"column {table.columns[place]!r} holds {held}: absolute values must not exceed {LARGEST:g}; rescale the data"
        )
    return values


SURE = ("date", "dates", "datetime", "timestamp")  # words in the name of a column that cannot be an asset
HINT = "if these are no dates, name another column with --dates"


def split_dates(table: pd.DataFrame, named: str | None) -> tuple[list[str] | None, pd.DataFrame]:
    """The dates, where there are any, and the other columns; dates must be distinct and ascending."""
    import pandas as pd

    if not isinstance(table.index, pd.RangeIndex) and named is None:  # how Parquet keeps dates
        table = table.reset_index(names=str(table.index.name or "index"))
        column: str | None = str(table.columns[0])
    elif named is not None:
        column = choose(table, named, "--dates")[0]
    else:
        column = _guess(table)
    rest = table if column is None else table.drop(columns=column)
    if len(rest.columns) and str(rest.columns[0]).startswith(
        UNNAMED
    ):  # a saved row index: not dates, and no asset either
        rest = rest.drop(columns=rest.columns[0])
    if column is None:
        return None, rest
    text = [str(value) for value in table[column]]
    _check_order(parse(table[column]), text, column)
    return text, rest


def _check_order(dates: pd.Series, text: list[str], column: str) -> None:
    """Refuse cells that are no dates, dates that repeat, and dates that run back."""
    import pandas as pd

    if dates.isna().any():
        row = int(dates.isna().to_numpy().argmax())
        raise InputError(
            f"column {column!r} should hold dates: row {row + 1} holds {text[row]!r}; name another with --dates"
        )
    repeated = dates.duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        first = int((dates == dates.iloc[row]).to_numpy().argmax())
        raise InputError(
            f"the date {text[row]} stands twice in column {column!r}, in rows {first + 1} and {row + 1}; {HINT}"
        )
    back = np.flatnonzero(~(dates.diff().iloc[1:] > pd.Timedelta(0)).to_numpy())
    if back.size:
        row = int(back[0]) + 1
        order = f"row {row + 1} ({text[row]}) comes after row {row} ({text[row - 1]})"
        raise InputError(f"the dates in column {column!r} must ascend: {order}; {HINT}")


def _guess(table: pd.DataFrame) -> str | None:
    """The first column, where its name or its cells say that it holds dates; one beside it that is called so must be named."""
    first, *others = map(str, table.columns)
    if first.startswith(UNNAMED):
        found = None if parse(table[first]).isna().any() else first
    else:
        found = first if _called_dates(first) or _may_be_dates(table[first]) else None
    stray = next(filter(_called_dates, others), None) if found is None else None
    if stray is not None:
        raise InputError(
            f"column {stray!r} is called dates but is not the first: name it with --dates, or leave it out with --drop"
        )
    return found


def _called_dates(name: str) -> bool:
    return any(word in SURE for word in name.lower().replace("_", " ").replace("-", " ").split())


def _may_be_dates(column: pd.Series) -> bool:
    """Whether the cells are dates, texts that are no numbers, or ascending whole numbers that read as dates."""
    if column.dtype.kind == "M":
        return True
    if column.dtype.kind in "OU" or str(column.dtype).startswith(("str", "string", "category")):
        return not _like_number(column.iloc[0])
    return bool(column.dtype.kind in "iu" and not parse(column).isna().any() and (np.diff(column.to_numpy()) > 0).all())


def parse(column: pd.Series) -> pd.Series:
    """Dates of any common kind, in UTC; NaT where a cell is none."""
    import pandas as pd

    if (
        column.dtype.kind == "f"
        and np.isfinite(column).all()
        and (column % 1 == 0).all()
        and (column.abs() < 1e9).all()
    ):
        column = column.astype(np.int64)  # 20200102.0
    if column.dtype.kind in "fbc":  # a price is no date, though it could be nanoseconds since 1970
        return pd.Series(pd.NaT, index=column.index)
    if column.dtype.kind in "iu":
        lengths = column.astype(str).str.len()
        form = (
            "%Y%m%d"
            if (lengths == 8).all()
            else "%Y"
            if (lengths == 4).all() and column.between(1800, 2200).all()
            else None
        )
        if form is None:
            return pd.Series(pd.NaT, index=column.index)
        return pd.to_datetime(column.astype(str), format=form, errors="coerce", utc=True)
    attempts: tuple[dict[str, Any], ...] = (
        {},
        {"dayfirst": True},
        {"format": "mixed"},
        {"format": "mixed", "dayfirst": True},
    )
    found = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which order of day and month it guessed
        for options in attempts:
            tried = pd.to_datetime(column, errors="coerce", utc=True, **options)
            found = tried if found is None else found
            if not tried.isna().any():
                return tried
    return found


def _like_number(value: Any) -> bool:
    """Whether a text was meant as a number, perhaps with separators of thousands."""
    try:
        float(str(value).replace(",", "").replace("'", "").replace(" ", ""))
    except ValueError:
        return False
    return True
