"""Progress of a command: shown on a terminal or on request, never on standard output."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas is not installed")
pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

from command import ENVIRONMENT  # noqa: E402


@pytest.fixture
def hard(tmp_path):
    """Write data whose proof takes very long, and return the folder."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 50))
    table = np.column_stack([A, A.sum(axis=1) + rng.standard_normal(60)])
    names = ",".join([*(f"a{j}" for j in range(50)), "y"])
    np.savetxt(tmp_path / "hard.csv", table, delimiter=",", header=names, comments="")
    return tmp_path


COMMAND = [
    sys.executable,
    "-m",
    "ksparse",
    "regress",
    "hard.csv",
    "--target",
    "y",
    "-k",
    "15",
    "--gap",
    "0",
    "--limit",
    "1",
    "--json",
]


def on_a_terminal(*more, cwd):
    """Return standard output and what standard error showed on a terminal."""
    ours, theirs = pty.openpty()
    environment = ENVIRONMENT | {"TERM": "xterm"}
    with subprocess.Popen(
        [*COMMAND, *more], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the other end of the terminal is closed
            pass
        out = process.stdout.read()
    os.close(ours)
    return json.loads(out), shown.decode()


def test_a_terminal_shows_bars(hard):
    answer, shown = on_a_terminal(cwd=hard)
    assert answer["command"] == "regress"
    assert "━" in shown  # of the search or of the proof, whichever takes its time


def test_a_file_gets_nothing_unless_asked(hard):
    done = subprocess.run(COMMAND, cwd=hard, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert json.loads(done.stdout)["command"] == "regress"
