"""The harness of the benchmark suite: rows of good, bad, late and missing contenders."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from rich.console import Console

from suite import command, tables
from suite import row as rows_file
from suite.contenders import OURS
from suite.contenders.ours import Ours
from suite.harness import Settings, run
from suite.judge import judge
from suite.problem import tiny

ONE = Settings(repeats=2, limit=60.0, threads=1)


STRANGE = """
import os, time
import numpy as np
from suite.contenders.base import Answer, Contender

class Strange(Contender):
    kinds = ("least squares",)
    def __init__(self, name, needs=()):
        self.name, self.needs = name, needs
    def warm_up(self, problem):
        pass
    def solve(self, problem, seconds):
        match self.name:
            case "raises":
                raise RuntimeError("no luck")
            case "late":
                time.sleep(600)
            case "dies":
                os._exit(3)
            case "idles":
                time.sleep(0.3)
            case "talks":
                print("a word"); os.write(1, b"another")
            case "nan":
                return Answer(np.full(problem.n, np.nan))
            case "short":
                return Answer(np.zeros(2))
        return Answer(np.zeros(problem.n), "zero")

CONTENDERS = [Strange(name) for name in ("raises", "late", "dies", "idles", "talks", "nan", "short")]
CONTENDERS += [Strange("missing", ("no_such_module",))]
"""


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """Run one of the contenders above on the tiny least-squares problem."""
    (tmp_path / "strange_contenders.py").write_text(STRANGE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("strange_contenders", None)
    from strange_contenders import CONTENDERS

    by_name = {one.name: one for one in CONTENDERS}
    return lambda name, settings=ONE: run("tiny", "least squares", tiny("least squares"), by_name[name], settings)


def test_the_harness_runs_and_judges():
    problem = tiny("least squares")
    row = run("tiny", "least squares", problem, Ours(), ONE)
    assert row.solved
    assert row.feasible
    assert row.objective == pytest.approx(judge(problem, Ours().solve(problem, 1.0).x).objective)
    assert len(row.seconds) == 2
    assert row.time > 0
    assert row.warm_up > 0
    assert row.peak >= row.before - 1 > 0
    assert (row.nonzeros, row.k, row.kind) == (3, 3, "least squares")


def test_a_missing_contender_is_listed_with_its_reason(strange):
    row = strange("missing")
    assert row.missing
    assert row.reason == "not installed: no_such_module"
    assert tables.missing([row, row]) == "- missing: not installed: no_such_module"


def test_one_that_raises_or_dies_becomes_a_row(strange):
    assert strange("raises").reason == "RuntimeError: no luck"
    assert strange("dies").reason == "the process ended with code 3"
    assert not strange("raises").solved


def test_one_that_is_late_is_stopped(strange):
    row = strange("late", Settings(repeats=1, limit=4.0, threads=1))
    assert row.reason == "not done in 4 s"
    assert not row.seconds


def test_the_clock_of_the_processor_does_not_count_idle_time(strange):
    first = Settings(repeats=1, limit=60.0, threads=1)
    assert strange("idles", first).time >= 0.3
    assert strange("idles", replace(first, processor=True)).time < 0.3


def test_what_a_library_prints_does_not_disturb(strange):
    row = strange("talks")
    assert row.solved
    assert row.note == "zero"


def test_answers_that_are_none(strange):
    assert strange("nan").reason == "the answer is not finite"
    assert strange("short").reason == "no answer to judge: x must have shape (24,), got (2,)"


def test_a_group_is_run_row_by_row(tmp_path):
    given = command.parser(None).parse_args(
        ["--only", "least squares", "--repeats", "1", "--threads", "1", "--out", str(tmp_path / "out")]
    )
    rows = command.run_group("tiny", given, Console(quiet=True), [Ours()])
    assert [row.contender for row in rows] == [OURS]
    assert rows_file.read(tmp_path / "out" / "tiny.jsonl") == rows
    text = (tmp_path / "out" / "tiny.md").read_text(encoding="utf-8")
    assert "**least squares** (90 × 24, k = 3)" in text
    assert rows_file.read(tmp_path / "nowhere.jsonl") == []


def test_missing_data_leave_a_problem_out(tmp_path, monkeypatch):
    monkeypatch.delenv("KSPARSE_DATA", raising=False)
    given = command.parser(None).parse_args(["--only", "colon", "--out", str(tmp_path)])
    rows = command.run_group("sparse_pca", given, Console(quiet=True))
    assert [row.missing for row in rows] == [True]
    assert "- sparse_pca, colon: colon_alon1999.npz is not in" in (tmp_path / "sparse_pca.md").read_text(
        encoding="utf-8"
    )
    assert command.settings_of(given).limit == 120
    given = command.parser(None).parse_args(["--quick"])
    assert command.settings_of(given).limit == command.QUICK_LIMIT
