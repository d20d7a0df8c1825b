"""The command line: `ksparse demo`, `reproduce`, `regress`, `pca`, `portfolio`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        from ksparse.cli.main import run  # an interrupt during this import is handled too

        return run(argv)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        print("ksparse: the command line needs rich: pip install 'ksparse[cli]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ksparse: interrupted", file=sys.stderr)
        return 130


__all__ = ["main"]
