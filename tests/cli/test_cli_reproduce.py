"""Demo, help, and the paper's tables from one command: stopped, killed and resumed."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ksparse as ks
from ksparse.cli import main, reproduce

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from command import ENVIRONMENT, ksparse  # noqa: E402

# --- demo, help ---


@pytest.mark.slow
def test_demo_leaves_a_table_and_two_pictures(tmp_path):
    done = ksparse("demo", cwd=tmp_path)
    for word in ("l2-PDCA", "l2-APDCA", "l1-DCA", "MIP-DCA", "auto", "pit props", "portfolio", "regression"):
        assert word in done.stdout
    judged = re.search(r"auto has the best objective: holds on (\d) of \1 instances\.", done.stdout)
    assert judged
    # on a busy machine; the rows are not compared
    assert judged[1] == "3" or "stopped by the time limit" in done.stdout
    assert "time for" in done.stdout
    assert "all weights (s)" in done.stdout
    progress = [line for line in done.stderr.splitlines() if "l2-APDCA: objective" in line]
    assert len(progress) == 3
    assert all(line.endswith("s for all weights") for line in progress)  # the same seconds as in the table
    pictures = sorted(path.name for path in (tmp_path / "ksparse-demo").iterdir())
    assert pictures == ["portfolio.png", "quality_and_time.png"]
    assert "ksparse-demo" in done.stdout
    assert "exists" in ksparse("demo", cwd=tmp_path, expect=2).stderr


def test_help_version_and_no_command(tmp_path):
    assert ksparse("--version", cwd=tmp_path).stdout.strip() == f"ksparse {ks.__version__}"
    assert "reproduce" in ksparse("--help", cwd=tmp_path).stdout
    for command in ("demo", "reproduce", "regress", "pca", "portfolio"):
        text = ksparse(command, "--help", cwd=tmp_path).stdout
        assert f"Examples:\n  ksparse {command}" in text
        assert "Exit codes:\n  0    solved\n  1    numerical failure or broken output pipe\n  2    bad input" in text
    assert "COMMAND" in ksparse(cwd=tmp_path, expect=2).stderr
    script = Path(sys.executable).with_name("ksparse")
    assert subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout.startswith(
        "ksparse "
    )


# --- reproduce ---


@pytest.mark.slow
def test_reproduce_writes_tables_pictures_and_report(tmp_path):
    done = ksparse("reproduce", "table2", "pitprops", "--quick", "--out", "r", cwd=tmp_path)
    assert "pDCAe has the best F" in done.stdout
    assert "table2 · 720 x 2560 · pDCAe" in done.stderr  # progress, on standard error
    out = tmp_path / "r"
    assert {path.name for path in out.iterdir()} == {
        "rows", "run.json", "report.html", "tables.md", "table2.csv", "table2.png", "pitprops.csv", "pitprops.png",
        "pitprops_weights.csv",
    }  # fmt: skip
    assert len(pd.read_csv(out / "table2.csv")) == 4  # the three of the paper, and ours
    assert len(pd.read_csv(out / "pitprops.csv")) == 5 * 30
    assert "ksparse reproduce table2 pitprops --quick" in (out / "report.html").read_text()
    answer = json.loads(ksparse("reproduce", "table2", "--quick", "--out", "r", "--json", cwd=tmp_path).stdout)
    assert [row["method"] for row in answer["rows"]] == ["APDCA fix", "APDCA bt", "pDCAe", "ours"]


@pytest.mark.slow
def test_reproduce_leaves_other_folders_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    done = ksparse("reproduce", "table2", "--quick", "--out", "mine", cwd=tmp_path, expect=2)
    assert "mine is not empty and not from an earlier run" in done.stderr
    assert "invalid choice: 'table9'" in ksparse("reproduce", "table9", cwd=tmp_path, expect=2).stderr
    assert "--limit must be > 0" in ksparse("reproduce", "--limit", "0", cwd=tmp_path, expect=2).stderr
    (tmp_path / "file").write_text("")
    assert "file is a file" in ksparse("reproduce", "--out", "file", cwd=tmp_path, expect=2).stderr


@pytest.mark.slow
def test_a_smaller_run_in_the_same_folder_takes_nothing_away(tmp_path):
    ksparse("reproduce", "table2", "--quick", "--out", "r", cwd=tmp_path)
    ksparse("reproduce", "pitprops", "--quick", "--out", "r", cwd=tmp_path)
    report = (tmp_path / "r" / "report.html").read_text()
    assert 'id="table2"' in report
    assert 'id="pitprops"' in report


@pytest.mark.slow
def test_a_row_that_hits_the_limit_says_so(tmp_path):
    done = ksparse("reproduce", "table2", "--quick", "--limit", "0.1", "--out", "r", cwd=tmp_path, expect=4)
    assert "limit of 0.1 s reached" in done.stdout
    assert pd.read_csv(tmp_path / "r" / "table2.csv")["objective"].notna().all()
    assert "limit of 0.1 s reached" in (tmp_path / "r" / "report.html").read_text()


def test_an_interrupt_between_storing_a_row_and_entering_it_loses_nothing(tmp_path, monkeypatch, capsys):
    class Stopped(reproduce.Book):
        def enter(self, job, row):
            if self.done == 1:
                raise KeyboardInterrupt
            super().enter(job, row)

    monkeypatch.setattr(reproduce, "Book", Stopped)
    assert main(["reproduce", "table2", "--quick", "--out", str(tmp_path / "r")]) == 130
    assert "the same command continues from there" in capsys.readouterr().err
    assert len(list((tmp_path / "r" / "rows").glob("*.json"))) == len(pd.read_csv(tmp_path / "r" / "table2.csv")) == 2


@pytest.fixture
def interruptible():
    """Background jobs of a shell ignore Ctrl-C, and so do their child processes, unless the signal is restored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_reproduce_goes_on_after_being_interrupted(tmp_path):
    command = [sys.executable, "-m", "ksparse", "reproduce", "pitprops", "table2", "--quick", "--out", "r"]
    running = subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    rows = tmp_path / "r" / "rows"
    end = time.monotonic() + 120
    while time.monotonic() < end and len(list(rows.glob("*.json"))) < 2:
        time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "the same command continues from there" in said
    assert len(pd.read_csv(tmp_path / "r" / "table2.csv")) >= 2
    before = {path.name: (path.stat().st_mtime_ns, path.read_text()) for path in rows.glob("*.json")}
    assert 2 <= len(before) < 154
    for _, text in before.values():
        json.loads(text)  # whole
    for path in (tmp_path / "r").glob("*.csv"):
        pd.read_csv(path)
    ksparse("reproduce", "pitprops", "table2", "--quick", "--out", "r", cwd=tmp_path)
    after = {path.name: path.stat().st_mtime_ns for path in rows.glob("*.json")}
    assert len(after) == 154
    assert all(after[name] == mtime for name, (mtime, _) in before.items())  # nothing was done twice
    table = pd.read_csv(tmp_path / "r" / "pitprops.csv")
    assert len(table) == 150
    assert not table.duplicated(["method", "seed", "repetition"]).any()
    assert [path for path in (tmp_path / "r").rglob("*") if path.name.endswith(".part")] == []


@pytest.mark.slow
def test_reproduce_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path):
    """Kill the command at the start, between rows and while it writes the report; the same command resumes."""
    rng = random.Random(0)
    command = [sys.executable, "-m", "ksparse", "reproduce", "pitprops", "--quick", "--out", "r"]
    out, kept = tmp_path / "r", {}
    for rows, longest in ((0, 1.5), (1, 0.05), (rng.randrange(20, 100), 0.05), (150, 1.0)):
        running = subprocess.Popen(
            command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 120
        while time.monotonic() < end and len(list(out.glob("rows/*.json"))) < rows and running.poll() is None:
            time.sleep(0.002)
        time.sleep(longest * rng.random())
        running.kill()
        running.wait(timeout=120)
        found = {path.name: path.read_text() for path in out.glob("rows/*.json")}
        assert all(json.loads(text) for text in found.values())  # whole
        assert all(found[name] == text for name, text in kept.items())  # and never done twice
        for path in out.glob("*.csv"):
            pd.read_csv(path)
        kept = found
    ksparse("reproduce", "pitprops", "--quick", "--out", "r", cwd=tmp_path)
    assert {name: path.read_text() for name in kept for path in [out / "rows" / name]} == kept
    table = pd.read_csv(out / "pitprops.csv")
    assert len(table) == 150
    assert not table.duplicated(["method", "seed", "repetition"]).any()
    assert sorted(path.name for path in out.iterdir()) == [
        "pitprops.csv", "pitprops.png", "pitprops_weights.csv", "report.html", "rows", "run.json", "tables.md",
    ]  # fmt: skip
    assert [path for path in out.rglob("*") if path.name.endswith(".part")] == []
