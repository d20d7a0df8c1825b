"""Code that one call runs through: files, functions, calls and calls across files, for six calls.

    python benchmarks/footprint.py [--files]

A crossing is a call whose nearest caller inside the library is in another file. Each call runs once before it is
counted, so that lazy imports and caches do not count. `--files` prints the number of functions entered in each file.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import ksparse as ks

LIBRARY = str(Path(ks.__file__).parent)


@dataclass
class Footprint:
    """Code entered by one call."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0
    crossings: int = 0

    @property
    def files(self) -> Counter[str]:
        """Return the files, with the number of functions entered in each."""
        return Counter(name for name, _ in self.functions)


def footprint(call: Callable[[], Any]) -> Footprint:
    """Count the code that `call` enters when it runs for the second time."""
    call()
    found = Footprint()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(LIBRARY) or code.co_name.startswith("<"):
            return
        found.functions.add((code.co_filename, code.co_qualname))
        found.calls += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(LIBRARY):
            caller = caller.f_back
        found.crossings += caller is not None and caller.f_code.co_filename != code.co_filename

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def calls() -> dict[str, Callable[[], Any]]:
    """Return the six calls."""
    rng = np.random.default_rng(0)
    A, b, R = rng.standard_normal((60, 40)), rng.standard_normal(60), rng.standard_normal((120, 30)) / 100
    squares = ks.LeastSquares(A, b)
    return {
        "LeastSquares, Nonnegative": lambda: ks.minimize(squares, 8, ks.Nonnegative()),
        "LeastSquares, BudgetBox, gap": lambda: ks.minimize(squares, 8, ks.BudgetBox(1.0, 0.0, 0.4), gap=0.01),
        "Logistic": lambda: ks.minimize(ks.Logistic(A, np.sign(b)), 5),
        "PrincipalComponent": lambda: ks.minimize(ks.PrincipalComponent.from_data(A), 5, ks.L2Ball(1.0)),
        "SparsePortfolio.fit": lambda: ks.SparsePortfolio(5).fit(R),
        "minimize_penalized": lambda: ks.minimize_penalized(squares, ks.MCP(0.5, 1.5)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="print the number of functions entered in each file")
    given = parser.parse_args()
    print(f"{'call':<30}{'files':>7}{'functions':>11}{'calls':>9}{'crossings':>11}")
    for name, call in calls().items():
        found = footprint(call)
        print(f"{name:<30}{len(found.files):>7}{len(found.functions):>11}{found.calls:>9}{found.crossings:>11}")
        if given.files:
            for file, functions in found.files.most_common():
                print(f"    {Path(file).relative_to(LIBRARY)!s:<44}{functions:>4}")


if __name__ == "__main__":
    main()
