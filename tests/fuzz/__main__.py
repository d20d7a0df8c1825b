"""`python -m tests.fuzz N`: solve N random problems, print a report, exit with code 1 on any failure."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from .case import case_number
from .pool import run_cases
from .report import details, failed, summary


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Random problems, judged by code that is not the library's."
    )
    parser.add_argument("N", type=int, help="how many problems")
    parser.add_argument("--seed", type=int, default=0, help="of the run; case i of a seed is always the same problem")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--small", action="store_true", help="problems that cost little, as in the slice of the tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="worker processes")
    parser.add_argument("--only", nargs="*", help="verdicts to show, default all")
    parser.add_argument("--each", type=int, default=1, help="snippets for each kind of failure")
    parser.add_argument("--out", type=Path, help="a file for the failures instead of the screen")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is ended still reports
    started, outcomes = time.monotonic(), {}
    try:
        numbers = range(arguments.first, arguments.first + arguments.N)
        for number, outcome in run_cases(
            ((i, case_number(i, arguments.seed, small=arguments.small)) for i in numbers), arguments.jobs
        ):
            outcomes[number] = outcome
            if sys.stderr.isatty() or len(outcomes) % 500 == 0:
                print(
                    f"\r{len(outcomes)} of {arguments.N}, {time.monotonic() - started:.0f} s",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
    except KeyboardInterrupt:
        print("\ninterrupted: a report of what was run", end="", file=sys.stderr)
    print(file=sys.stderr)
    shown = outcomes
    if arguments.only:
        shown = {i: o for i, o in outcomes.items() if any(v.name in arguments.only for v in o.verdicts)}
    text = "\n".join(details(shown, arguments.seed, arguments.each))
    if arguments.out:
        arguments.out.write_text(text)
    else:
        print(text)
    print(summary(outcomes, time.monotonic() - started))
    return int(failed(outcomes))


if __name__ == "__main__":
    sys.exit(main())
