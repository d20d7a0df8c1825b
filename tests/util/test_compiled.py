"""Compiled loops and the import of the compiler."""

import os
import subprocess
import sys

PACKAGE = """
import os, signal
import numba.core  # a second import of numba finds this one done, and does not set it as an attribute again

if os.environ.pop("INTERRUPT", None):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass
numba.core.VALUE

def njit(**options):
    return lambda loop: loop
"""

CALLS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start this process with SIGINT ignored
from ksparse.util.compiled import compiled

try:
    compiled(len)
except KeyboardInterrupt:
    print("interrupted")
print(compiled(len)("four"))
"""


def test_an_interrupt_while_numba_is_imported_leaves_it_usable(tmp_path):
    (tmp_path / "numba" / "core").mkdir(parents=True)
    (tmp_path / "numba" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "numba" / "core" / "__init__.py").write_text("VALUE = 1\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "INTERRUPT": "1"},
        timeout=120,
    )
    assert done.stdout.split() == ["interrupted", "4"], done.stderr
