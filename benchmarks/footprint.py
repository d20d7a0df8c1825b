"""How many files and functions of the library one call runs through: what a reader must follow."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import ksparse as ks

HOUSE = str(Path(ks.__file__).parent)


def footprint(call):
    """The files and the functions of the library that a call enters."""
    files, functions = set(), set()

    def enter(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOUSE) and not code.co_name.startswith("<"):
            files.add(code.co_filename)
            functions.add((code.co_filename, code.co_qualname))

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), len(functions)


def main():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 40)), rng.standard_normal(60)
    calls = {
        "LeastSquares, Nonnegative": lambda: ks.minimize(ks.LeastSquares(A, b), 8, ks.Nonnegative()),
        "LeastSquares, BudgetBox": lambda: ks.minimize(ks.LeastSquares(A, b), 8, ks.BudgetBox(1.0, 0.0, 0.4)),
    }
    for name, call in calls.items():
        files, functions = footprint(call)
        print(f"{name:<28} {files:>4} files {functions:>5} functions")


if __name__ == "__main__":
    main()
