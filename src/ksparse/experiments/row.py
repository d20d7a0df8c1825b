"""Rows of the experiment tables: one method on one instance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ksparse.experiments.paper import Figures, figures
from ksparse.result import Status

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Row:
    """Result of one method on one instance; objective, cardinality and violation are recomputed from the raw data."""

    table: str
    instance: str
    seed: int  # of the instance, or of the start
    repetition: int
    method: str
    k: float = math.nan  # maximum number of nonzeros; nan if the instance could not be loaded
    rho: float = math.nan  # weight of the penalty of the returned solution
    cardinality: float = math.nan
    objective: float = math.nan
    mean_return: float = math.nan
    time: float = math.nan  # seconds; for a grid of weights those of the chosen weight, as in the paper
    iterations: float = math.nan
    time_all: float = math.nan  # seconds for all weights
    time_lipschitz: float = math.nan  # part of it spent on the Lipschitz constant
    violation: float = math.nan  # distance to C
    status: str = ""
    note: str = ""  # a limit that was reached, or the reason for a missing result
    limit: float = math.nan  # time limit in seconds
    machine: str = ""  # where the times were measured
    details: dict[str, Any] = field(default_factory=dict)  # the trace, and one entry per weight

    @property
    def limited(self) -> bool:
        """Whether the time limit stopped the method."""
        return self.status == Status.TIME_LIMIT.name

    @property
    def paper(self) -> Figures:
        """The figures of the paper for this row."""
        return figures(self.table, self.instance, self.method)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON types, with null for nan."""
        return plain(asdict(self))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Row:
        """Return the row of a dictionary from `to_json`."""
        missing = {f.name: math.nan for f in fields(cls) if f.type == "float"}
        values: dict[str, Any] = {name: missing.get(name) if v is None else v for name, v in stored.items()}
        return cls(**values)


def plain(value: Any) -> Any:
    """Return a value with JSON types only; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the rows as a tidy table, with the figures of the paper."""
    import pandas as pd

    names = [f.name for f in fields(Row) if f.name != "details"]
    columns = names + [f"paper_{f.name}" for f in fields(Figures)]
    records = [[getattr(row, name) for name in names] + list(asdict(row.paper).values()) for row in rows]
    renamed = {"mean_return": "return", "paper_mean_return": "paper_return"}
    return pd.DataFrame(records, columns=columns).rename(columns=renamed)


def weights_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return a table with one line per weight that was tried."""
    import pandas as pd

    keys = ("table", "instance", "seed", "repetition", "method")
    tried = [(row, entry) for row in rows for entry in row.details.get("weights", [])]
    return pd.DataFrame([{key: getattr(row, key) for key in keys} | entry for row, entry in tried])
