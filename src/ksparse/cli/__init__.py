"""The command line: `ksparse demo`, `reproduce`, `regress`, `pca`, `portfolio`."""

from ksparse.cli.main import main

__all__ = ["main"]
