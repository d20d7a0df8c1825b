"""The real entry point, in a process of its own."""

import os
import subprocess
import sys

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def ksparse(*arguments, cwd, expect=0):
    done = subprocess.run(
        [sys.executable, "-m", "ksparse", *map(str, arguments)], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done
