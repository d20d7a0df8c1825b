"""The parser, and one place where errors become messages and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import ksparse
from ksparse.cli import demo, pca, portfolio, regress, reproduce
from ksparse.cli.exits import BAD_INPUT, INTERRUPTED, NO_SOLUTION, TEXT, InputError
from ksparse.cli.output import Output
from ksparse.errors import InfeasibleError, UnboundedError

COMMANDS: dict[str, ModuleType] = {"demo": demo, "reproduce": reproduce, "regress": regress, "pca": pca, "portfolio": portfolio}


def build_parser() -> argparse.ArgumentParser:
    """The command line, with an example per command."""
    parser = argparse.ArgumentParser(
        prog="ksparse", description="The best k-sparse point of a smooth function over a convex set.", epilog=TEXT, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"ksparse {ksparse.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        about, example = module.HELP[0].upper() + module.HELP[1:] + ".", f"Example: {module.EXAMPLE}\n\n{TEXT}"
        shown = argparse.RawDescriptionHelpFormatter  # keeps the example on its own line
        command = commands.add_parser(name, help=module.HELP, description=about, epilog=example, formatter_class=shown, allow_abbrev=False)
        module.add_arguments(command)
        if name in ("regress", "pca", "portfolio"):
            command.add_argument("--limit", type=_seconds, metavar="SECONDS", help="stop after this time with the best answer so far")
            command.add_argument("--seed", type=int, default=0, help="of the random restarts (default: 0)")
        command.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        command.add_argument("--quiet", action="store_true", help="print nothing but errors")
        command.add_argument("--force", action="store_true", help="replace files that exist")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"must be >= 0, got {text}")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the return value is its exit code."""
    options = build_parser().parse_args(argv)
    output = Output(as_json=options.json, quiet=options.quiet, force=options.force)
    try:
        return int(COMMANDS[options.command].run(options, output))
    except InfeasibleError as error:
        return _fail(output, "infeasible", error, NO_SOLUTION)
    except UnboundedError as error:
        return _fail(output, "unbounded", error, NO_SOLUTION)
    except (InputError, ValueError, TypeError, OSError) as error:  # the library's own checks name their argument
        return _fail(output, "error", error, BAD_INPUT)
    except KeyboardInterrupt:
        return _fail(output, "interrupted", "", INTERRUPTED)


def _fail(output: Output, kind: str, error: Any, code: int) -> int:
    message = f"{kind}: {error}" if str(error) else kind
    print(f"ksparse: {message}", file=sys.stderr)
    output.json({"error": kind, "message": str(error), "exit_code": code})
    return code
