"""One line of a table: an instance, a method and what came out, beside the paper's own figures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ksparse.result import Status

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Figures:
    """What a table of the paper prints for one method on one instance; nan where it prints nothing."""

    rho: float = math.nan
    cardinality: float = math.nan
    objective: float = math.nan
    mean_return: float = math.nan
    time: float = math.nan
    iterations: float = math.nan
    time_lipschitz: float = math.nan


@dataclass(frozen=True)
class Row:
    """objective, cardinality and violation are recomputed from the raw data."""

    table: str
    instance: str
    seed: int  # of the instance, or of the start
    repetition: int
    method: str
    k: float = math.nan  # nonzeros allowed; nan where the instance could not be made
    rho: float = math.nan  # the weight that gave the answer
    cardinality: float = math.nan
    objective: float = math.nan
    mean_return: float = math.nan
    time: float = math.nan  # seconds; for a grid of weights those of the chosen one, as the paper counts
    iterations: float = math.nan
    time_all: float = math.nan  # seconds for all weights together
    time_lipschitz: float = math.nan  # of them, for the Lipschitz constant
    violation: float = math.nan  # distance to C
    status: str = ""
    note: str = ""  # a limit that was hit, or why there is no answer
    limit: float = math.nan  # seconds allowed
    machine: str = ""  # where it was measured
    paper: Figures = field(default_factory=Figures)
    details: dict[str, Any] = field(default_factory=dict)  # the trace, and one entry per weight

    @property
    def limited(self) -> bool:
        """Whether the time limit cut the method off."""
        return self.status == Status.TIME_LIMIT.name

    def to_json(self) -> dict[str, Any]:
        """Plain types, None for nan; without the paper's figures, which are known."""
        return _none_for_nan({name: value for name, value in asdict(self).items() if name != "paper"})  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Row:
        """The inverse of `to_json`."""
        numbers = {f.name for f in fields(cls) if f.type == "float"}
        values: dict[str, Any] = {
            name: math.nan if value is None and name in numbers else value for name, value in stored.items()
        }
        values.pop("paper", None)
        return cls(**values)


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """The rows as a tidy table."""
    import pandas as pd

    names = [f.name for f in fields(Row) if f.name not in ("paper", "details")]
    columns = names + [f"paper_{f.name}" for f in fields(Figures)]
    records = [[getattr(row, name) for name in names] + list(asdict(row.paper).values()) for row in rows]
    return pd.DataFrame(records, columns=columns).rename(
        columns={"mean_return": "return", "paper_mean_return": "paper_return"}
    )


def weights_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """One line per weight that was tried."""
    import pandas as pd

    keys = ("table", "instance", "seed", "repetition", "method")
    records = [
        {key: getattr(row, key) for key in keys} | entry for row in rows for entry in row.details.get("weights", [])
    ]
    return pd.DataFrame(records)


def _none_for_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _none_for_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_none_for_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
