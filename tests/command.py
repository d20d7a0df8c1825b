"""Run the command line: in this process, or as a separate process where the process itself is tested."""

import contextlib
import io
import os
import warnings
from types import SimpleNamespace
from unittest import mock

from ksparse.cli import main

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def ksparse(*arguments, cwd, expect=0):
    """Run `python -m ksparse` in this process, to save its imports, and return the output and the exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd))
        stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "100"}))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")  # printed, as in a process
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse
            code = end.code or 0
    done = SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), returncode=code)
    assert done.returncode == expect, done.stdout + done.stderr
    return done
