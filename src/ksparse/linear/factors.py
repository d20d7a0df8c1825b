"""Which columns are one factor's dummies, by their names: what an encoder calls them tells where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SEPARATORS = (
    "_",
    "=",
    "[",
)  # city_Paris (OneHotEncoder, get_dummies), city=Paris (DictVectorizer), city[T.Paris] (formulas)
TRANSFORMER = "__"  # between a ColumnTransformer's own name for a part and the column's


class factors:  # noqa: N801 (called like a function, as scikit-learn's make_column_selector is)
    """Groups for the estimators: the dummies of each of these factors are one group, every other column one by itself.

    A column belongs to a factor where its name begins with the factor's and one of ``_``, ``=``, ``[``: ``city_Paris`` as OneHotEncoder and
    pandas.get_dummies write it, ``city=Paris`` as DictVectorizer does, ``city[T.Paris]`` as formulas do; with or without the part's name
    that ColumnTransformer puts before it (``cat__city_Paris``). Of several factors the longest name counts. The names are looked at when an
    estimator is fitted, so that it may stand at the end of a pipeline; they reach it where the encoder's output is a table:
    ``set_output(transform="pandas")``.

    Parameters
    ----------
    *names : str
        The factors, as the columns were called before they were encoded; ``part__name`` for those of one part of a ColumnTransformer only.

    Raises
    ------
    TypeError
        If a name is not a string.
    ValueError
        If there is no name; when called, if a factor has no column, or columns of several parts.

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
        """A label for each column.

        Parameters
        ----------
        columns : iterable of str
            Their names.

        Returns
        -------
        list of str
            The factor's name for its dummies, for every other column its own.
        """
        columns = [str(column) for column in columns]
        found = [self._factor(column) for column in columns]
        for name in self.names:
            own = [column for column, factor in zip(columns, found, strict=True) if factor == name]
            if not own:
                raise ValueError(
                    f"factors names {name!r}, but no column is called {name}_... or so: there are {', '.join(columns[:8])}"
                )
            parts = sorted(
                {
                    column.partition(TRANSFORMER)[0]
                    for column in own
                    if TRANSFORMER in column and not column.startswith(name)
                }
            )
            if len(parts) > 1:
                raise ValueError(
                    f"factors names {name!r}, which has columns of several parts, {' and '.join(parts)}: say which, as "
                    f"{parts[0] + TRANSFORMER + name!r}"
                )
        return [column if factor is None else factor for column, factor in zip(columns, found, strict=True)]

    def _factor(self, column: str) -> str | None:
        """The longest name that a column begins with, as it is or after its part's."""
        inner = column.partition(TRANSFORMER)[2]
        known = (
            name
            for name in sorted(self.names, key=len, reverse=True)
            if _begins(column, name) or (inner and _begins(inner, name))
        )
        return next(known, None)

    def __repr__(self) -> str:
        return f"factors({', '.join(map(repr, self.names))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, factors) and other.names == self.names

    def __hash__(self) -> int:
        return hash(self.names)


def _begins(column: str, name: str) -> bool:
    return column == name or any(column.startswith(name + separator) for separator in SEPARATORS)
