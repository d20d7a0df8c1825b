"""The paper's experiments: rows judged from raw data, taken up again after a stop, read as the data say."""

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import ksparse as ks
from conftest import data_file
from ksparse import datasets

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from ksparse.atomic import sweep, write_atomically  # noqa: E402
from ksparse.experiments import EXPERIMENTS, pitprops, table2, table3, table4, table5  # noqa: E402
from ksparse.experiments import run as run_module  # noqa: E402
from ksparse.experiments.catalogue import jobs_of  # noqa: E402
from ksparse.experiments.environment import environment  # noqa: E402
from ksparse.experiments.figures import draw, to_png  # noqa: E402
from ksparse.experiments.layout import compact, lay_out, starts_layout  # noqa: E402
from ksparse.experiments.paper import COLON, PAPER, TOKYO, figures  # noqa: E402
from ksparse.experiments.readings import claims, reading  # noqa: E402
from ksparse.experiments.report import Made, html  # noqa: E402
from ksparse.experiments.row import Figures, Row, frame, weights_frame  # noqa: E402
from ksparse.experiments.run import METHODS, run  # noqa: E402
from ksparse.experiments.store import Store  # noqa: E402
from ksparse.experiments.table4 import SMALL  # noqa: E402

FAST = ("l2-APDCA", "auto")


def small_jobs():
    return list(table5.jobs(sizes=(1,), methods=("l2-APDCA", "l1-DCA", "auto")))


# --- the tables ---


def test_table_5_beside_the_paper():
    table = table5(sizes=(1,))
    assert list(table["method"]) == list(METHODS)
    first = table[table["seed"] == 0].set_index("method")
    assert (table["cardinality"] <= 20).all()
    assert (table["violation"] == 0).all()
    assert first["objective"]["auto"] <= 0.1560  # the best of many starts that was known before
    assert first["paper_objective"]["l2-PDCA"] == 0.148
    assert first["paper_iterations"]["MIP-DCA"] == 3
    assert np.isnan(first["paper_objective"]["auto"])
    assert (table["time_all"] >= table["time"]).all()
    assert set(first["rho"].dropna()) <= {10.0**i for i in range(-4, 5)}
    assert first["objective"].idxmin() == "auto"
    seeds = table5(sizes=(1,), seeds=(1, 2), methods=FAST)
    assert list(seeds["seed"]) == [1, 1, 2, 2]


def test_the_objective_is_judged_by_another_hand(monkeypatch):
    """A method that lies about its value is found out: the row holds the value of its x on the raw data."""
    honest = ks.minimize

    def liar(*args, **kwargs):
        result = honest(*args, **kwargs)
        return type(result)(**{**result.__dict__, "fun": -1.0, "support": np.arange(3)})

    monkeypatch.setattr(run_module, "minimize", liar)
    row = table5(sizes=(1,), methods=("auto",)).iloc[0]
    assert row["objective"] > 0.1
    assert row["cardinality"] == 20


def test_table_2_counts_the_time_for_L_and_keeps_traces():
    rows = run(table2.jobs(sizes=(1,), methods=("APDCA fix", "APDCA bt", "pDCAe")))
    data = datasets.table2(1, 0)
    assert [row.method for row in rows] == ["APDCA fix", "APDCA bt", "pDCAe"]
    for row in rows:
        assert row.time >= (0 if np.isnan(row.time_lipschitz) else row.time_lipschitz)
        assert row.details["trace"]["F"][-1] == pytest.approx(row.objective, rel=1e-2)
        assert len(row.details["trace"]["F"]) <= 400
        assert row.details["trace"]["iteration"][-1] == row.iterations
        assert row.objective < 0.5 * np.sum(data.b**2)
    assert np.isnan(rows[1].time_lipschitz)
    assert rows[0].iterations < rows[2].iterations
    assert rows[1].iterations < rows[2].iterations
    assert min(row.objective for row in rows) == rows[2].objective


def test_pit_props_from_random_starts():
    table = pitprops(starts=4)
    assert len(table) == 4 * len(METHODS)
    R, _ = datasets.pit_props()
    assert table["objective"].min() == pytest.approx(-3.4062, abs=1e-4)
    assert (table["objective"] >= -np.linalg.eigvalsh(R)[-1]).all()
    assert table[table["method"] == "auto"]["objective"].nunique() == 1
    assert (table["rho"].dropna() == 1.0).all()


def test_table_4_runs_without_any_file():
    table = table4(instances=(SMALL,), methods=FAST).set_index("method")
    assets = datasets.factor_model(300, 600, 0)
    assert table["objective"]["auto"] <= table["objective"]["l2-APDCA"]
    assert (table["violation"] <= 1e-12).all()
    assert table["return"]["auto"] == pytest.approx(assets.r @ ks.minimize(ks.MeanVariance(assets.V, assets.r, 10), 10, ks.Hyperplane()).x)


def test_table_3_and_4_on_the_papers_data():
    for name in ("colon_alon1999.npz", "tokyo_daily_returns_2148x1338.npz"):
        data_file(name)
    colon = table3(instances=(COLON,), methods=("l2-PDCA", *FAST)).query("instance.str.startswith('colon')").set_index("method")
    assert colon["objective"]["auto"] == pytest.approx(-84.467, abs=1e-3)
    assert colon["objective"].idxmin() == "auto"
    assert colon["paper_objective"]["l2-APDCA"] == -48.24
    tokyo = table4(instances=(TOKYO,), methods=("l2-PDCA", *FAST)).query("instance.str.startswith('Tokyo')").set_index("method")
    assert tokyo["objective"]["auto"] == pytest.approx(-4.74e-4, abs=1e-6)
    assert tokyo["iterations"]["l2-APDCA"] < tokyo["iterations"]["l2-PDCA"]


def test_without_the_data_rows_say_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("KSPARSE_DATA", raising=False)
    table = table3(methods=FAST, out=tmp_path)
    colon = table[table["instance"].str.startswith("colon")]
    assert len(colon) == 2
    assert colon["objective"].isna().all()
    assert colon["note"].str.contains("colon_alon1999.npz is not in the folder named by the environment variable KSPARSE_DATA").all()
    assert table[table["instance"].str.startswith("digits")]["objective"].notna().all()
    assert len(list((tmp_path / "rows").glob("*colon*"))) == 0  # not stored: tried again next time


def test_every_row_of_the_paper_is_among_the_jobs():
    jobs = {(job.table, job.instance, job.method) for job in jobs_of(list(EXPERIMENTS), quick=False)}
    assert set(PAPER) <= jobs
    assert len(PAPER) == 15 + 4 + 4 + 20
    quick = jobs_of(list(EXPERIMENTS), quick=True)
    assert {job.table for job in quick} == set(EXPERIMENTS)
    assert figures("table4", "Tokyo, 2148 x 1338", "l2-PDCA") == Figures(1, 10, -1.15e-4, 8.05e-4, 10.2, 2523)
    assert np.isnan(figures("table5", "180 x 640", "auto").objective)
    assert figures("table2", "720 x 2560", "pDCAe").time_lipschitz == 0.3


def test_unknown_names_are_refused():
    for call in (
        lambda: table2(methods=("PGM",)),
        lambda: table5(sizes=(1,), methods=("l2-PDCA", "SCIP")),
        lambda: table3(instances=("iris",)),
        lambda: table4(instances=("iris",)),
    ):
        with pytest.raises(ValueError, match=r"(methods|instances) must be among .* got '(PGM|SCIP|iris)'"):
            call()


# --- stop and go on ---


def test_rows_done_before_are_taken_up(tmp_path, monkeypatch):
    before = run(small_jobs(), out=tmp_path)
    monkeypatch.setattr(run_module, "minimize", lambda *args, **kwargs: pytest.fail("solved again"))
    after = run(small_jobs(), out=tmp_path)
    pd.testing.assert_frame_equal(frame(before), frame(after))
    pd.testing.assert_frame_equal(weights_frame(before), weights_frame(after))


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
    monkeypatch.setattr(run_module, "minimize", lambda *args, **kwargs: calls.append(kwargs["method"]) or honest(*args, **kwargs))
    rows = run(small_jobs(), out=tmp_path)
    assert calls == ["apdca", "l1dca", "l1dca", "auto"]
    assert [row.method for row in rows] == ["l2-APDCA", "l1-DCA", "auto"]


def test_a_row_cut_off_by_a_short_limit_is_done_again_under_a_longer_one(tmp_path, monkeypatch):
    """The clock is left out of it: whatever the limit, the method says that it was cut off."""
    honest, limits = ks.minimize, []

    def cut_off(*args, max_time, **kwargs):
        limits.append(max_time)
        result = honest(*args, max_iter=20, **kwargs)
        return type(result)(**{**result.__dict__, "status": ks.Status.TIME_LIMIT})

    monkeypatch.setattr(run_module, "minimize", cut_off)
    jobs = list(table5.jobs(sizes=(1,), methods=("l2-PDCA",)))
    (short,) = run(jobs, out=tmp_path, limit=5.0)
    assert short.limited
    assert "limit of 5 s reached after 9 weights: the best so far" in short.note
    assert short.cardinality <= 20
    assert np.isfinite(short.objective)
    (same,) = run(jobs, out=tmp_path, limit=5.0)
    assert same.time_all == short.time_all
    run(jobs, out=tmp_path, limit=3.0)
    assert limits == [5.0]  # taken up, under the same limit and under a shorter one
    run(jobs, out=tmp_path, limit=9.0)
    assert limits == [5.0, 9.0]


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


# --- what the tables say ---


def made_up(times, objectives, iterations=None, name="table5", instance="180 x 640"):
    rows = [
        Row(
            name,
            instance,
            0,
            0,
            method,
            20,
            1.0,
            20,
            objective,
            time=time,
            iterations=its,
            time_all=9 * time,
            violation=0.0,
            status="STATIONARY",
        )
        for method, time, objective, its in zip(METHODS, times, objectives, iterations or [10] * 5, strict=True)
    ]
    return rows


def test_readings_and_claims_follow_the_data():
    good = frame(made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1]))
    assert reading("table5", good) == "Fastest: l2-PDCA on 1 of 1. Best objective: auto on 1 of 1."
    faster, best = claims("table5", good)
    assert str(faster) == "The l2 methods are faster than l1-DCA and MIP-DCA: holds on 1 of 1 instances."
    assert best.fails == ()
    bad = frame(
        made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1]) + made_up([9, 2, 3, 4, 1], [0.3, 0.1, 0.4, 0.5, 0.2], instance="360 x 1280")
    )
    assert reading("table5", bad) == "Fastest: l2-PDCA on 1 of 2, auto on 1 of 2. Best objective: auto on 1 of 2, l2-APDCA on 1 of 2."
    faster, best = claims("table5", bad)
    assert str(faster).endswith("holds on 1 of 2 instances (not on 360 x 1280).")
    assert best.fails == ("360 x 1280",)
    fewer = claims("table4", frame(made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1], [100, 200, 1, 1, 1], "table4")))[0]
    assert fewer.fails == ("180 x 640",)
    assert claims("table5", good[good["method"] == "auto"]) == []  # nothing to compare
    assert reading("table5", good.assign(objective=np.nan)) == "No row can be compared; the notes say why."


def test_times_are_medians_over_repetitions():
    rows = [
        Row("table5", "180 x 640", 0, r, "auto", 20, objective=0.1, time=t, time_all=t, status="X") for r, t in enumerate((5.0, 1.0, 2.0))
    ]
    (line,) = lay_out(frame(rows)).lines
    assert "2" in line.cells
    assert "5" not in line.cells


def test_the_layout_marks_the_best_and_puts_the_paper_beside():
    rows = run(table5.jobs(sizes=(1,), methods=FAST))
    layout = lay_out(frame(rows))
    assert [line.best for line in layout.lines] == [False, True]
    assert "paper: objective" in layout.headings
    small = compact(layout)
    place = small.headings.index("objective (paper)")
    assert small.lines[0].cells[place].endswith(" (0.127)")
    assert "(" not in small.lines[1].cells[place]


class Page(HTMLParser):
    """Tags that must be closed are, and nothing is fetched from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.cells = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        self.cells += tag == "td"
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_well_formed_file():
    rows_of = {"table5": made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1]), "pitprops": run(pitprops.jobs(starts=2, methods=FAST))}
    rows_of["table3"] = [Row("table3", "colon", 0, 0, "auto", note="left out: <file> & more")]
    pictures = {name: to_png(draw(name, rows)) for name, rows in rows_of.items() if draw(name, rows) is not None}
    assert set(pictures) == {"table5", "pitprops"}
    text = html(rows_of, pictures, Made("ksparse reproduce all", environment()))
    page = Page()
    page.feed(text)
    assert page.open == []
    assert all(source.startswith("data:") for source in page.sources)
    assert sum(source.startswith("data:image/png") for source in page.sources) == 2
    assert page.cells > 50
    for words in ("&lt;file&gt; &amp; more", "Fastest: l2-PDCA on 1 of 1", "ksparse reproduce all", "numpy", "width=device-width"):
        assert words in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text)


def test_starts_are_laid_out_by_quartiles():
    table = frame([Row("pitprops", "pit props", 0, s, "auto", 5, objective=-float(s), time=0.1, status="OPTIMAL") for s in range(5)])
    (line,) = starts_layout(table).lines
    assert line.cells[:5] == ("-4.0000", "-3.0000", "-2.0000", "-1.0000", "0.0000")


def test_rows_cut_off_by_the_limit_are_not_compared():
    rows = made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1])
    rows[0] = replace(rows[0], status="TIME_LIMIT", note="limit of 1 s reached: the best so far")
    table = frame(rows)
    assert reading("table5", table) == (
        "Fastest: l2-APDCA on 1 of 1. Best objective: auto on 1 of 1. Not compared: 1 row cut off by the limit."
    )
    assert claims("table5", table) == []  # each needs the row that was cut off


def test_a_rounded_answer_of_an_exact_penalty_says_so():
    rows = run(pitprops.jobs(starts=2, methods=("MIP-DCA", "l2-PDCA")))
    assert [row.note == run_module.ROUNDED for row in rows] == [True, True, False, False]
    assert "rounded because the method itself gave more than k nonzeros: MIP-DCA 2." in reading("pitprops", frame(rows))


def test_rows_know_their_limit_and_where_they_were_measured():
    (row,) = run(table5.jobs(sizes=(1,), methods=("auto",)), limit=7.0)
    assert row.limit == 7.0
    assert "threads" in row.machine
    text = html({"table5": [row, replace(row, seed=1, limit=9.0, machine="another, 1 core")]}, {}, Made("x", {}))
    for words in ("7 and 9 s per method", "1 rows measured on</dt><dd>another, 1 core"):
        assert words in text


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
