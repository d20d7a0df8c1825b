"""Compiled loops and the import of the compiler."""

import os
import subprocess
import sys

import pytest

PACKAGE = """
import os, signal
import numba.core  # a second import of numba finds this one done, and does not set it as an attribute again

def interrupt(place):
    if os.environ.get("INTERRUPT") == place:
        del os.environ["INTERRUPT"]
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

interrupt("import")
numba.core.VALUE

def njit(**options):
    from numba.core.registry import cpu_target

    def compiled(loop):
        def call(*args):
            cpu_target.typing_context.refresh()
            return loop(*args)
        return call
    return compiled
"""

REGISTRY = """
import numba

class Context:
    loaded = None

    def refresh(self):
        if self.loaded is False:
            raise RuntimeError("half loaded")
        if self.loaded is None:
            self.loaded = False
            numba.interrupt("first compilation")
            self.loaded = True

class cpu_target:
    typing_context = target_context = Context()
"""

CALLS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start this process with SIGINT ignored
from ksparse.util.compiled import compiled

try:
    compiled(len)("four")
except KeyboardInterrupt:
    print("interrupted")
print(compiled(len)("four"))
"""


@pytest.mark.parametrize("place", ["import", "first compilation"])
def test_an_interrupt_while_numba_is_imported_leaves_it_usable(place, tmp_path):
    """The first compilation imports most of numba."""
    (tmp_path / "numba" / "core").mkdir(parents=True)
    (tmp_path / "numba" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "numba" / "core" / "__init__.py").write_text("VALUE = 1\n")
    (tmp_path / "numba" / "core" / "registry.py").write_text(REGISTRY)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "INTERRUPT": place},
        timeout=120,
    )
    assert done.stdout.split() == ["interrupted", "4"], done.stderr
