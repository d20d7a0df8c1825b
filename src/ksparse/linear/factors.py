"""Groups of dummy columns of the same factor, found by column names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SEPARATORS = ("_", "=", "[")  # OneHotEncoder and get_dummies, DictVectorizer, formulas
TRANSFORMER = "__"  # between the name of a ColumnTransformer step and the column name


class factors:  # noqa: N801 (called like a function, as scikit-learn's make_column_selector is)
    """Groups for the estimators: the dummy columns of each named factor form one group, every other column its own.

    A column belongs to a factor if its name begins with the factor's name and one of ``_``, ``=``, ``[``:
    ``city_Paris`` from OneHotEncoder and pandas.get_dummies, ``city=Paris`` from DictVectorizer, ``city[T.Paris]`` from
    formulas; also after the step name that ColumnTransformer prepends (``cat__city_Paris``). If several factors match,
    the longest name wins. The names are read when an estimator is fitted, so it may be the last step of a pipeline;
    they reach it if the encoder returns a table: ``set_output(transform="pandas")``.

    Parameters
    ----------
    *names : str
        Names of the factors before encoding; ``step__name`` for the columns of one ColumnTransformer step only.

    Raises
    ------
    TypeError
        If a name is not a string.
    ValueError
        If no name is given; when called, if a factor has no column, or columns of several steps.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.factors("city")(["cat__city_Paris", "cat__city_Rome", "num__age"])
    ['city', 'city', 'num__age']
    """

    def __init__(self, *names: str) -> None:
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"factors must be names of columns, got {name!r}")
        if not names:
            raise ValueError("factors must be given at least one name")
        self.names = names

    def __call__(self, columns: Iterable[Any]) -> list[str]:
        """Return a label for each column.

        Parameters
        ----------
        columns : iterable of str
            Column names.

        Returns
        -------
        list of str
            The name of the factor for its dummy columns, the column name for all others.
        """
        columns = [str(column) for column in columns]
        found = [self._factor(column) for column in columns]
        for name in self.names:
            own = [column for column, factor in zip(columns, found, strict=True) if factor == name]
            if not own:
                prefixes = " or ".join(repr(name + separator) for separator in SEPARATORS)
                lacking = f"no column name starts with {prefixes}"
                raise ValueError(f"factors names {name!r}, but {lacking}; the columns are {', '.join(columns[:8])}")
            steps = {c.partition(TRANSFORMER)[0] for c in own if TRANSFORMER in c and not c.startswith(name)}
            if len(steps) > 1:
                held = f"columns of several steps, {' and '.join(sorted(steps))}"
                advice = f"choose one, for example {min(steps) + TRANSFORMER + name!r}"
                raise ValueError(f"factors names {name!r}, which has {held}: {advice}")
        return [column if factor is None else factor for column, factor in zip(columns, found, strict=True)]

    def _factor(self, column: str) -> str | None:
        """Return the longest factor name that matches a column, with or without its step name."""
        inner = column.partition(TRANSFORMER)[2]
        known = (name for name in self.names if _matches(column, name) or (inner and _matches(inner, name)))
        return max(known, key=len, default=None)

    def __repr__(self) -> str:
        return f"factors({', '.join(map(repr, self.names))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, factors) and other.names == self.names

    def __hash__(self) -> int:
        return hash(self.names)


def _matches(column: str, name: str) -> bool:
    return column == name or column.startswith(tuple(name + separator for separator in SEPARATORS))
