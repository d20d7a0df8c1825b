"""Figures of Tables 2-5 of the paper (Tono, Takeda, Gotoh 2017), for comparison: the rows of paper.csv."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figures:
    """Figures of the paper for one method on one instance; nan if the paper prints none."""

    rho: float = math.nan
    cardinality: float = math.nan
    objective: float = math.nan
    mean_return: float = math.nan
    time: float = math.nan
    iterations: float = math.nan
    time_lipschitz: float = math.nan


COLON = "colon, 62 x 2000"
TOKYO = "Tokyo, 2148 x 1338"

PAPER: dict[tuple[str, str, str], Figures] = {}
with Path(__file__).with_name("paper.csv").open(encoding="utf-8", newline="") as _file:
    for _table, _instance, _method, *_numbers in list(csv.reader(_file))[1:]:  # below the headings
        PAPER[_table, _instance, _method] = Figures(*(float(number or "nan") for number in _numbers))


def figures(table: str, instance: str, method: str) -> Figures:
    """Return the figures of the paper for a row, all nan if there are none."""
    return PAPER.get((table, instance, method), Figures())
