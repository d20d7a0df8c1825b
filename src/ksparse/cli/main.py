"""The parser, and one place where errors become messages and exit codes."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import ksparse
from ksparse.cli import demo, pca, portfolio, regress, reproduce
from ksparse.cli.output import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    NO_SOLUTION,
    TEXT,
    InputError,
    Output,
    prepare_streams,
    visible,
)
from ksparse.cli.tables import number
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.util.progress import show_progress

COMMANDS: dict[str, ModuleType] = {
    "demo": demo,
    "reproduce": reproduce,
    "regress": regress,
    "pca": pca,
    "portfolio": portfolio,
}

SHELLS = ("bash", "zsh", "tcsh")
NUMBER = r"(inf|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)"
NEGATIVE = re.compile(rf"-{NUMBER}%?(:-?{NUMBER}%?)?")  # a number, or LEAST:MOST


class Completion(argparse.Action):
    """Prints a script that a shell completes the command by, and ends."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        """Print it."""
        try:
            import shtab
        except ImportError:
            parser.exit(BAD_INPUT, "ksparse: completion needs shtab: pip install 'ksparse[cli]'\n")
        print(shtab.complete(parser, shell=values))
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """The command line, with an example per command."""
    parser = argparse.ArgumentParser(
        prog="ksparse", description="The best k-sparse point of a smooth function over a convex set.", epilog=TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument(
        "--completion",
        action=Completion,
        choices=SHELLS,
        metavar="SHELL",
        help="print a completion script for bash, zsh or tcsh",
    )
    parser.add_argument("--version", action="version", version=f"ksparse {ksparse.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        about = module.HELP[0].upper() + module.HELP[1:] + "."
        example = "Examples:\n" + "".join(f"  {line}\n" for line in module.EXAMPLES) + f"\n{TEXT}"
        shown = argparse.RawDescriptionHelpFormatter  # keeps the example on its own line
        command = commands.add_parser(
            name, help=module.HELP, description=about, epilog=example, formatter_class=shown, allow_abbrev=False
        )
        module.add_arguments(command)
        if name in ("regress", "pca", "portfolio"):
            told = "whole searches, of which the best counts (default: one, or with --limit as many as help)"
            command.add_argument(
                "--report",
                type=Path,
                metavar="PAGE.html",
                help="write one page with the answer, its proof and what lies around it",
            )
            command.add_argument("--effort", type=_searches, metavar="N", help=told)
            told = "run branch and bound until the optimality gap, relative to the solution's objective, is at most GAP: 1%% or 0.01"
            command.add_argument("--gap", type=_share, metavar="GAP", help=told)
            command.add_argument(
                "--limit", type=_seconds, metavar="SECONDS", help="stop after this time with the best answer so far"
            )
            command.add_argument("--seed", type=int, default=0, help="of the random restarts (default: 0)")
        command.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        command.add_argument(
            "--progress", action="store_true", help="say how far it has come even where standard error is no terminal"
        )
        command.add_argument("--quiet", action="store_true", help="print nothing but errors")
        command.add_argument("--force", action="store_true", help="replace files that exist")
    return parser


def _searches(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer >= 1, got {text!r}")
    return int(text)


def _share(text: str) -> float:
    try:
        value = number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a share such as 1% or 0.01, got {text!r}") from None
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be >= 0 and finite, got {text}")
    return value


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text!r}") from None
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"must be >= 0, got {text}")
    return None if math.isinf(value) else value


def _with_negative_numbers(argv: Sequence[str]) -> list[str]:
    """The arguments with values such as -1e-4, -inf or -1:1 tied to their option, which argparse takes for options themselves."""
    tied: list[str] = []
    for argument in argv:
        if NEGATIVE.fullmatch(argument) and tied and tied[-1].startswith("--") and "=" not in tied[-1]:
            tied[-1] += f"={argument}"
        else:
            tied.append(argument)
    return tied


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command; the return value is its exit code."""
    prepare_streams()
    given = list(sys.argv[1:] if argv is None else argv)
    options = build_parser().parse_args(_with_negative_numbers(given))
    options.command_line = shlex.join(["ksparse", *given])
    output = Output(as_json=options.json, quiet=options.quiet, force=options.force, progress=options.progress)
    try:
        with (
            show_progress(output.shows_progress),
            np.errstate(all="ignore"),
        ):  # an answer is judged by its own values, not by a warning on the screen
            code = int(COMMANDS[options.command].run(options, output))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough; files are written before anything is printed
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # the interpreter flushes it once more at the end
        return FAILED
    except InfeasibleError as error:
        return _fail(output, "infeasible", error, NO_SOLUTION)
    except UnboundedError as error:
        return _fail(output, "unbounded", error, NO_SOLUTION)
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        return _fail(output, "numerical trouble", error, FAILED)
    except (InputError, ValueError, TypeError, OSError) as error:  # the library's own checks name their argument
        return _fail(output, "error", error, BAD_INPUT)
    except KeyboardInterrupt:
        return _fail(output, "interrupted", "", INTERRUPTED)


def _fail(output: Output, kind: str, error: Any, code: int) -> int:
    message = visible(f"{kind}: {error}" if str(error) else kind)
    print(f"ksparse: {message}", file=sys.stderr)
    with contextlib.suppress(OSError):  # where standard output itself is the trouble
        output.json({"error": kind, "message": str(error), "exit_code": code})
        sys.stdout.flush()
    return code
