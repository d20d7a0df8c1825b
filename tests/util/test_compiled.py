"""Compiled loops and the import of the compiler."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from ksparse.util import progress
from ksparse.util.compiled import Numbers, compiled

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
from ksparse.util import progress
from ksparse.util.compiled import compiled

def length(text):
    return len(text)

try:
    compiled(length)("four")
except KeyboardInterrupt:
    print("interrupted")
print(compiled(length)("four"))
"""


@pytest.mark.parametrize("place", ["import", "first compilation"])
def test_an_interrupt_while_numba_is_imported_leaves_it_usable(place, tmp_path):
    """The first compilation imports most of numba."""
    (tmp_path / "numba" / "core").mkdir(parents=True)
    (tmp_path / "numba" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "numba" / "core" / "__init__.py").write_text("VALUE = 1\n")
    (tmp_path / "numba" / "core" / "registry.py").write_text(REGISTRY)
    (tmp_path / "numba" / "core" / "event.py").write_text("class Listener: pass\ndef register(kind, listener): pass\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "INTERRUPT": place},
        timeout=120,
    )
    assert done.stdout.split() == ["interrupted", "4"], done.stderr


def double(x: Numbers) -> None:
    for i in range(len(x)):
        x[i] = twice(x[i])


def twice(x: float) -> float:
    return 2.0 * x


def test_a_loop_is_compiled_once_with_the_functions_that_it_calls():
    loop, x = compiled(double), np.array([1.0, -3.0])
    assert len(loop.signatures) == len(compiled(twice, from_python=False).signatures) == 1  # before any call
    loop(x)
    assert x.tolist() == [2.0, -6.0]
    with pytest.raises(TypeError, match="No matching definition"):
        loop(np.array([1, 2]))
    y = np.array([1.0, 2.0])
    double(y)  # the loop itself is left as it is
    assert y.tolist() == [2.0, 4.0]


def test_a_bar_says_that_a_loop_is_compiled(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(progress, "YOUNG", 0.0)
    drawn, made = [], {}

    class Wall:
        def draw(self, bars):
            drawn.extend(bar.what for bar in bars)

        def close(self):
            pass

    # without a source file numba does not cache it on disk
    exec("def double(x: 'Numbers') -> 'None':\n    for i in range(len(x)): x[i] *= 2.0", made)
    x = np.ones(2)
    with progress.shown_on(Wall):
        compiled(made["double"])(x)
    assert x.tolist() == [2.0, 2.0]
    assert "compiling (once)" in drawn


def test_an_interrupt_while_scipy_linalg_is_imported_leaves_it_usable():
    code = """
import signal, threading, os, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from ksparse.util import resources

load = resources._import_scipy_linalg

def slow():
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(0.3)
    return load()

resources._import_scipy_linalg = slow
try:
    resources.scipy_linalg()
except KeyboardInterrupt:
    print("interrupted")
print(callable(resources.scipy_linalg().blas.dger))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "True"], done.stderr
