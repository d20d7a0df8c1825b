"""The dates of a table of prices: found, parsed, and in order."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.exits import InputError
from ksparse.cli.tables import UNNAMED, choose

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("date", "day", "time", "timestamp", "week", "month", "year", "period")


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
    if column is None:
        return None, table
    text, dates = [str(value) for value in table[column]], parse(table[column])
    rest = table.drop(columns=column)
    if column.startswith(UNNAMED) and dates.isna().any():  # a saved row index: not dates, and no asset either
        return None, rest
    if dates.isna().any():
        row = int(dates.isna().to_numpy().argmax())
        raise InputError(f"column {column!r} should hold dates: row {row + 1} holds {text[row]!r}; name another with --dates")
    repeated = dates.duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        first = int((dates == dates.iloc[row]).to_numpy().argmax())
        raise InputError(f"the date {text[row]} stands twice in column {column!r}, in rows {first + 1} and {row + 1}")
    back = np.flatnonzero(~(dates.diff().iloc[1:] > pd.Timedelta(0)).to_numpy())
    if back.size:
        row = int(back[0]) + 1
        raise InputError(f"the dates in column {column!r} must ascend: row {row + 1} ({text[row]}) comes after row {row} ({text[row - 1]})")
    return text, rest


def _guess(table: pd.DataFrame) -> str | None:
    """The column that is dates by its name, or the first one if it is text, has no heading, or holds whole numbers that are dates."""
    for name in table.columns:
        words = name.lower().replace("_", " ").replace("-", " ").split()
        if any(word in NAMES or word.rstrip("s") in NAMES for word in words):
            return str(name)
    first = str(table.columns[0])
    column = table[first]
    if first.startswith(UNNAMED) or column.dtype.kind == "M":
        return first
    if column.dtype.kind in "OU" or str(column.dtype).startswith(("str", "string", "category")):
        return None if _like_number(column.iloc[0]) else first
    if column.dtype.kind in "iu" and not parse(column).isna().any() and (np.diff(column.to_numpy()) > 0).all():
        return first
    return None


def parse(column: pd.Series) -> pd.Series:
    """Dates of any common kind, in UTC; NaT where a cell is none."""
    import pandas as pd

    if column.dtype.kind in "iu":
        lengths = column.astype(str).str.len()
        form = "%Y%m%d" if (lengths == 8).all() else "%Y" if (lengths == 4).all() and column.between(1800, 2200).all() else None
        if form is None:
            return pd.Series(pd.NaT, index=column.index)
        return pd.to_datetime(column.astype(str), format=form, errors="coerce", utc=True)
    attempts: tuple[dict[str, Any], ...] = ({}, {"dayfirst": True}, {"format": "mixed"}, {"format": "mixed", "dayfirst": True})
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
