"""The dates of a table of prices: found, parsed, and in order."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.cli.exits import InputError
from ksparse.cli.tables import UNNAMED, choose

if TYPE_CHECKING:
    import pandas as pd

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
    if len(rest.columns) and str(rest.columns[0]).startswith(UNNAMED):  # a saved row index: not dates, and no asset either
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
        raise InputError(f"column {column!r} should hold dates: row {row + 1} holds {text[row]!r}; name another with --dates")
    repeated = dates.duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        first = int((dates == dates.iloc[row]).to_numpy().argmax())
        raise InputError(f"the date {text[row]} stands twice in column {column!r}, in rows {first + 1} and {row + 1}; {HINT}")
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
        raise InputError(f"column {stray!r} is called dates but is not the first: name it with --dates, or leave it out with --drop")
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

    if column.dtype.kind == "f" and np.isfinite(column).all() and (column % 1 == 0).all() and (column.abs() < 1e9).all():
        column = column.astype(np.int64)  # 20200102.0
    if column.dtype.kind in "fbc":  # a price is no date, though it could be nanoseconds since 1970
        return pd.Series(pd.NaT, index=column.index)
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
