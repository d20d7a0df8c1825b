"""Figures of Tables 2-5 of the paper (Tono, Takeda, Gotoh 2017), for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass


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

_TABLE2 = """
720 x 2560   | APDCA fix: 3.18e-2 1.8 377 0.3  | APDCA bt: 3.06e-2 3.5 449  | pDCAe: 3.05e-2 2.9 1002 0.3
1440 x 5120  | APDCA fix: 6.41e-2 11.5 610 2.2 | APDCA bt: 6.70e-2 10.1 331 | pDCAe: 6.41e-2 12.3 1002 2.2
2160 x 7680  | APDCA fix: 1.05e-1 16.3 409 2.4 | APDCA bt: 1.02e-1 30.5 443 | pDCAe: 1.02e-1 24.2 1002 2.4
2880 x 10240 | APDCA fix: 1.30e-1 42.0 614 4.7 | APDCA bt: 1.32e-1 44.9 372 | pDCAe: 1.30e-1 43.5 1002 4.7
3600 x 12800 | APDCA fix: 1.67e-1 41.1 363 8.1 | APDCA bt: 1.63e-1 68.0 362 | pDCAe: 1.60e-1 68.4 1002 8.1
"""
_TABLE3 = f"""
{COLON} | l2-PDCA: 1000 100 -45.70 0.4 28 | l2-APDCA: 1000 100 -48.24 0.2 26
{COLON} | l1-DCA: 1000 100 -45.65 3.3 3   | MIP-DCA: 1000 100 -80.68 17.3 8
"""
_TABLE4 = f"""
{TOKYO} | l2-PDCA: 1 10 -1.15e-4 8.05e-4 10.2 2523 | l2-APDCA: 1 10 -3.91e-4 8.11e-4 2.3 262
{TOKYO} | l1-DCA: 1 9 7.75e-4 5.48e-4 45.8 2       | MIP-DCA: 1 10 3.62e-4 6.03e-4 105.8 4
"""
_TABLE5 = """
180 x 640  | l2-PDCA: 1 20 1.48e-1 0.1 68    | l2-APDCA: 1 20 1.27e-1 0.1 102
180 x 640  | l1-DCA: 0.1 20 1.45e-1 1.4 3    | MIP-DCA: 100 20 4.48e-1 3.2 3
360 x 1280 | l2-PDCA: 1 40 1.36e-1 0.2 123   | l2-APDCA: 1 40 1.10e-1 0.3 125
360 x 1280 | l1-DCA: 0.1 38 1.44e-1 7.8 4    | MIP-DCA: 100 40 4.40e-1 17.0 3
540 x 1920 | l2-PDCA: 1 60 1.36e-1 0.4 97    | l2-APDCA: 1 60 1.12e-1 0.7 146
540 x 1920 | l1-DCA: 0.1 54 1.41e-1 22.1 4   | MIP-DCA: 100 60 2.20e-1 71.4 3
720 x 2560 | l2-PDCA: 1 80 1.39e-1 0.9 129   | l2-APDCA: 1 80 1.04e-1 1.3 156
720 x 2560 | l1-DCA: 0.1 66 1.64e-1 43.2 3   | MIP-DCA: 100 80 2.07e-2 123.6 2
900 x 3200 | l2-PDCA: 1 100 1.16e-1 1.8 173  | l2-APDCA: 1 100 9.46e-2 2.4 184
900 x 3200 | l1-DCA: 0.1 80 1.50e-1 78.3 3   | MIP-DCA: 100 100 4.41e-1 201.3 2
"""
_COLUMNS = {
    "table2": (_TABLE2, ("objective", "time", "iterations", "time_lipschitz")),
    "table3": (_TABLE3, ("rho", "cardinality", "objective", "time", "iterations")),
    "table4": (_TABLE4, ("rho", "cardinality", "objective", "mean_return", "time", "iterations")),
    "table5": (_TABLE5, ("rho", "cardinality", "objective", "time", "iterations")),
}
PAPER: dict[tuple[str, str, str], Figures] = {}
for _table, (_text, _names) in _COLUMNS.items():
    for _line in _text.strip().splitlines():
        _instance, *_cells = (part.strip() for part in _line.split("|"))
        for _cell in _cells:
            _method, _numbers = _cell.split(":")
            _values = map(float, _numbers.split())
            PAPER[_table, _instance, _method] = Figures(**dict(zip(_names, _values, strict=False)))


def figures(table: str, instance: str, method: str) -> Figures:
    """Return the figures of the paper for a row, all nan if there are none."""
    return PAPER.get((table, instance, method), Figures())
