"""An interrupted run of the experiments resumes, and its files are complete or absent."""

import json
import os

import numpy as np
import pytest

import ksparse as ks

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from ksparse.experiments import run as run_module  # noqa: E402
from ksparse.experiments import table5  # noqa: E402
from ksparse.experiments.row import frame, weights_frame  # noqa: E402
from ksparse.experiments.run import Store, run  # noqa: E402
from ksparse.util.files import sweep, write_atomically  # noqa: E402


def small_jobs():
    return list(table5.jobs(sizes=(1,), methods=("l2-APDCA", "l1-DCA", "auto")))


@pytest.mark.slow
def test_rows_done_before_are_taken_up(tmp_path, monkeypatch):
    before = run(small_jobs(), out=tmp_path)
    monkeypatch.setattr(run_module, "minimize", lambda *args, **kwargs: pytest.fail("solved again"))
    after = run(small_jobs(), out=tmp_path)
    pd.testing.assert_frame_equal(frame(before), frame(after))
    pd.testing.assert_frame_equal(weights_frame(before), weights_frame(after))


@pytest.mark.slow
def test_an_interrupt_loses_nothing_but_the_row_in_hand(tmp_path, monkeypatch):
    honest, calls = ks.minimize, []

    def stopped(*args, **kwargs):
        calls.append(kwargs["method"])
        result = honest(*args, **kwargs)
        return result if len(calls) < 2 else type(result)(**{**result.__dict__, "status": ks.Status.INTERRUPTED})

    monkeypatch.setattr(run_module, "minimize", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(small_jobs(), out=tmp_path)
    assert calls == ["apdca", "l1dca"]
    assert len(list((tmp_path / "rows").iterdir())) == 1
    monkeypatch.setattr(
        run_module, "minimize", lambda *args, **kwargs: calls.append(kwargs["method"]) or honest(*args, **kwargs)
    )
    rows = run(small_jobs(), out=tmp_path)
    assert calls == ["apdca", "l1dca", "l1dca", "auto"]
    assert [row.method for row in rows] == ["l2-APDCA", "l1-DCA", "auto"]


def test_a_row_cut_off_by_a_short_limit_is_done_again_under_a_longer_one(tmp_path, monkeypatch):
    """Independent of the clock: the method reports a time limit for every limit."""
    honest, limits = ks.minimize, []

    def cut_off(*args, max_time, **kwargs):
        limits.append(max_time)
        result = honest(*args, max_iter=20, **kwargs)
        return type(result)(**{**result.__dict__, "status": ks.Status.TIME_LIMIT})

    monkeypatch.setattr(run_module, "minimize", cut_off)
    jobs = list(table5.jobs(sizes=(1,), methods=("l2-PDCA",)))
    (short,) = run(jobs, out=tmp_path, limit=5.0)
    assert short.limited
    assert "time limit of 5 s reached after 9 weights (best solution found so far)" in short.note
    assert short.cardinality <= 20
    assert np.isfinite(short.objective)
    (same,) = run(jobs, out=tmp_path, limit=5.0)
    assert same.time_all == short.time_all
    run(jobs, out=tmp_path, limit=3.0)
    assert limits == [5.0]  # taken up, under the same limit and under a shorter one
    run(jobs, out=tmp_path, limit=9.0)
    assert limits == [5.0, 9.0]


@pytest.mark.slow
def test_stored_rows_of_other_settings_or_no_sense_are_done_again(tmp_path):
    job = small_jobs()[0]
    run([job], out=tmp_path)
    path = Store(tmp_path).path(job)
    for content in ('{"settings": {"version": "0"}, "limited": false}', "{ half", "[]", "null", "", '{"settings": {}}'):
        path.write_text(content)
        assert Store(tmp_path).get(job, 1.0) is None
    (row,) = run([job], out=tmp_path)
    assert json.loads(path.read_text())["row"]["objective"] == row.objective
    (again,) = run([job], out=tmp_path, force=True)
    assert again.time_all != row.time_all


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    target = tmp_path / "table.csv"
    write_atomically(target, "old")
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / f".row.json.{2**22 + 1}.part").write_text("left by a kill")
    Store(tmp_path)
    assert list((tmp_path / "rows").iterdir()) == []


def test_runs_in_one_folder_leave_each_others_parts_alone(tmp_path):
    mine, theirs, dead = (tmp_path / f".row.json.{pid}.part" for pid in (os.getpid(), os.getppid(), 2**22 + 1))
    foreign = tmp_path / ".mine.part"
    for path in (mine, theirs, dead, foreign):
        path.write_text("part")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([theirs.name, foreign.name])


def test_a_link_is_followed_and_a_mode_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_atomically(target, "newer", replace=False)
    assert target.read_text() == "new"
