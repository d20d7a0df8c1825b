"""Tables from CSV, Parquet or NPZ files, checked cell by cell: a message names the column and the row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.exits import InputError

if TYPE_CHECKING:
    import pandas as pd

KINDS = ".csv, .csv.gz, .tsv, .parquet or .npz"
DATE_NAMES = ("date", "dates", "day", "time", "timestamp", "week", "month")


def read_table(path: Path) -> pd.DataFrame:
    """The file as a table with distinct column names."""
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("reading tables needs pandas: pip install 'ksparse[cli]'") from error
    if not path.is_file():
        raise InputError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    name = path.name.lower()
    try:
        if name.endswith(".npz"):
            table = _from_npz(path)
        elif name.endswith(".parquet"):
            table = pd.read_parquet(path)
        elif name.endswith((".csv", ".csv.gz", ".tsv")):
            table = _from_csv(path, "\t" if name.endswith(".tsv") else ",")
        else:
            raise InputError(f"{path} must be a {KINDS} file")
    except InputError:
        raise
    except ImportError as error:
        raise InputError("reading Parquet needs pyarrow: pip install 'ksparse[cli]'") from error
    except Exception as error:  # readers raise all sorts on a file that is not what its name says
        raise InputError(f"{path} cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error
    table.columns = [str(column) for column in table.columns]
    _refuse_repeated(list(table.columns), path)
    if table.empty:
        raise InputError(f"{path} holds no rows below its header" if len(table.columns) else f"{path} is empty")
    return table


def _from_csv(path: Path, separator: str) -> pd.DataFrame:
    import pandas as pd

    head = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str)
    _refuse_repeated([str(name) for name in head.iloc[0] if isinstance(name, str)], path)  # the reader would rename them
    return pd.read_csv(path, sep=separator, skipinitialspace=True)


def _from_npz(path: Path) -> pd.DataFrame:
    """Columns of a 2-D array, named by a text array of that length where there is one, and 1-D arrays of as many entries as it has rows."""
    import pandas as pd

    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    wide = [key for key, array in arrays.items() if array.ndim == 2]
    if len(wide) > 1:
        raise InputError(f"{path} must hold one 2-D array, got {', '.join(wide)}")
    columns: dict[str, Any] = {}
    rows = len(arrays[wide[0]]) if wide else max((array.size for array in arrays.values() if array.ndim == 1), default=0)
    columns |= {key: array for key, array in arrays.items() if array.ndim == 1 and array.size == rows}
    if wide:
        X = arrays[wide[0]]
        labels = [
            array for key, array in arrays.items() if array.ndim == 1 and array.dtype.kind == "U" and array.size == X.shape[1] != rows
        ]
        names = [str(label) for label in labels[0]] if labels else [f"{wide[0]}{j}" for j in range(X.shape[1])]
        _refuse_repeated([*columns, *names], path)
        return pd.concat([pd.DataFrame(columns), pd.DataFrame(X, columns=names)], axis=1)
    return pd.DataFrame(columns)


def _refuse_repeated(names: list[str], path: Path) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise InputError(f"{path} has more than one column named {repeated[0]!r}")


def choose(table: pd.DataFrame, names: list[str], option: str) -> list[str]:
    """Column names that the user gave, each checked to be there."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(table.columns[:8]) + (", ..." if len(table.columns) > 8 else "")
            raise InputError(f"{option}: there is no column {name!r}; the columns are {known}")
    return names


def numbers(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    """The cells as float64; text, missing values and infinities are refused by column and row (the first below the header is row 1)."""
    import pandas as pd

    for name in table.columns:
        column = table[name]
        missing = column.isna().to_numpy()
        if missing.any():
            count = int(missing.sum())
            raise InputError(
                f"column {name!r} has {count} missing value{'s' if count > 1 else ''}, the first in row {int(missing.argmax()) + 1}: "
                "fill or remove them, or leave the column out with --drop"
            )
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            parsed = pd.to_numeric(column, errors="coerce").isna().to_numpy()
            row = int(parsed.argmax())
            raise InputError(
                f"column {name!r} is not numeric: row {row + 1} holds {str(column.iloc[row])!r}; encode it, or leave it out with --drop"
            )
        if np.iscomplexobj(column):
            raise InputError(f"column {name!r} holds complex numbers")
    values: np.ndarray[Any, Any] = table.to_numpy(dtype=float)
    if not np.isfinite(values).all():
        row, place = (int(i[0]) for i in np.nonzero(~np.isfinite(values)))
        raise InputError(f"column {table.columns[place]!r} is infinite in row {row + 1}")
    return values


def split_dates(table: pd.DataFrame, named: str | None) -> tuple[list[str] | None, pd.DataFrame]:
    """The dates, where a column holds them, and the other columns; dates must be distinct and ascending."""
    import pandas as pd

    column = named or next((name for name in table.columns if name.lower() in DATE_NAMES), None)
    if column is None and not pd.api.types.is_numeric_dtype(table.iloc[:, 0]) and not _is_number(table.iloc[0, 0]):
        column = str(table.columns[0])
    if column is None:
        return None, table
    choose(table, [column], "--dates")
    text = [str(value) for value in table[column]]
    dates = pd.to_datetime(table[column].astype(str), errors="coerce")
    if dates.isna().any():
        row = int(dates.isna().to_numpy().argmax())
        raise InputError(f"column {column!r} should hold dates: row {row + 1} holds {text[row]!r}; name another with --dates")
    repeated = dates.duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        first = int((dates == dates.iloc[row]).to_numpy().argmax())
        raise InputError(f"the date {text[row]} stands twice in column {column!r}, in rows {first + 1} and {row + 1}")
    back = np.flatnonzero(np.diff(dates.to_numpy().astype("datetime64[ns]").astype(np.int64)) < 0)
    if back.size:
        row = int(back[0]) + 1
        raise InputError(f"the dates in column {column!r} must ascend: row {row + 1} ({text[row]}) comes after row {row} ({text[row - 1]})")
    return text, table.drop(columns=column)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
