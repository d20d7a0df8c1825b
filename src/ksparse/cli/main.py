"""The parser, and the one place where errors become messages and exit codes."""

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
from typing import Any

import numpy as np

import ksparse
from ksparse.cli import demo, pca, portfolio, regress, reproduce
from ksparse.cli.input_tables import nonnegative
from ksparse.cli.output import BAD_INPUT, FAILED, INTERRUPTED, NO_SOLUTION, TEXT, Output, prepare_streams, visible
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.util.progress import show_progress

COMMANDS = {module.__name__.rpartition(".")[2]: module for module in (demo, reproduce, regress, pca, portfolio)}
NUMBER = r"(inf|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)"
NEGATIVE = re.compile(rf"-{NUMBER}%?(:-?{NUMBER}%?)?")  # a number, or MIN:MAX


class Completion(argparse.Action):
    """Print a completion script for a shell, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:
        """Print the script."""
        try:
            import shtab
        except ImportError:
            parser.exit(BAD_INPUT, "ksparse: completion needs shtab: pip install 'ksparse[cli]'\n")
        print(shtab.complete(parser, shell=values))
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, with examples and exit codes in the help."""
    style: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    about = "Find the best k-sparse point of a smooth function over a convex set."
    parser = argparse.ArgumentParser(prog="ksparse", description=about, epilog=TEXT, **style)
    shells, text = ("bash", "zsh", "tcsh"), "print a completion script for bash, zsh or tcsh"
    parser.add_argument("--completion", action=Completion, choices=shells, metavar="SHELL", help=text)
    parser.add_argument("--version", action="version", version=f"ksparse {ksparse.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        about = module.HELP[0].upper() + module.HELP[1:] + "."
        epilog = "\n".join(["Examples:", *(f"  {line}" for line in module.EXAMPLES), "", TEXT])
        command = commands.add_parser(name, help=module.HELP, description=about, epilog=epilog, **style)
        module.add_arguments(command)
        add = command.add_argument
        if name in ("regress", "pca", "portfolio"):
            add("--report", type=Path, metavar="PAGE.html", help="write a self-contained HTML report")
            text = "number of independent searches, 0 for a quick one (default: 1; with --limit, as many as fit)"
            add("--effort", type=_count, metavar="N", help=text)
            text = "run branch and bound until the optimality gap is at most GAP, relative to the solution: 1%% or 0.01"
            add("--gap", type=nonnegative, metavar="GAP", help=text)
            add("--limit", type=_seconds, metavar="SECONDS", help="time limit; the best result so far is kept")
            add("--seed", type=int, default=0, help="seed of the random restarts (default: 0)")
        add("--json", action="store_true", help="print one JSON object instead of a table")
        add("--progress", action="store_true", help="report progress even if standard error is not a terminal")
        add("--quiet", action="store_true", help="print nothing but errors")
        add("--force", action="store_true", help="replace existing files")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text!r}")
    return int(text)


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text!r}") from None
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"must be >= 0, got {text}")
    return None if math.isinf(value) else value


def _with_negative_numbers(argv: Sequence[str]) -> list[str]:
    """Return the arguments with values such as -1e-4, -inf or -1:1 joined to their option, for argparse."""
    joined: list[str] = []
    for argument in argv:
        if NEGATIVE.fullmatch(argument) and joined and joined[-1].startswith("--") and "=" not in joined[-1]:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    prepare_streams()
    given = list(sys.argv[1:] if argv is None else argv)
    options = build_parser().parse_args(_with_negative_numbers(given))
    options.command_line = shlex.join(["ksparse", *given])
    output = Output(as_json=options.json, quiet=options.quiet, force=options.force, progress=options.progress)
    try:
        with show_progress(output.shows_progress), np.errstate(all="ignore"):  # results are checked by their values
            code = int(COMMANDS[options.command].run(options, output))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # files are written before anything is printed
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # flushed once more at the end
        return FAILED
    except InfeasibleError as error:
        return _fail(output, "infeasible", error, NO_SOLUTION)
    except UnboundedError as error:
        return _fail(output, "unbounded", error, NO_SOLUTION)
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        return _fail(output, "numerical trouble", error, FAILED)
    except (ValueError, TypeError, OSError) as error:
        return _fail(output, "error", error, BAD_INPUT)
    except KeyboardInterrupt:
        return _fail(output, "interrupted", "", INTERRUPTED)


def _fail(output: Output, kind: str, error: Any, code: int) -> int:
    message = visible(f"{kind}: {error}" if str(error) else kind)
    print(f"ksparse: {message}", file=sys.stderr)
    with contextlib.suppress(OSError):  # if standard output failed
        output.json({"error": kind, "message": str(error), "exit_code": code})
        sys.stdout.flush()
    return code
