"""Text about the tables: layouts, readings, claims and the report, from made-up rows."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("clarabel", reason="Clarabel is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from ksparse import LeastSquares, Nonnegative, TopK2, datasets, minimize_penalized  # noqa: E402
from ksparse.experiments import pitprops, table5  # noqa: E402
from ksparse.experiments import run as run_module  # noqa: E402
from ksparse.experiments.readings import claims, reading  # noqa: E402
from ksparse.experiments.report import (  # noqa: E402
    Made,
    at_papers_weights,
    compact,
    draw,
    html,
    lay_out,
    markdown,
    starts_layout,
    to_png,
)  # fmt: skip
from ksparse.experiments.row import Row, frame  # noqa: E402
from ksparse.experiments.run import METHODS, environment, run  # noqa: E402


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
        made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1])
        + made_up([9, 2, 3, 4, 1], [0.3, 0.1, 0.4, 0.5, 0.2], instance="360 x 1280")
    )
    assert (
        reading("table5", bad)
        == "Fastest: l2-PDCA on 1 of 2, auto on 1 of 2. Best objective: auto on 1 of 2, l2-APDCA on 1 of 2."
    )
    faster, best = claims("table5", bad)
    assert str(faster).endswith("holds on 1 of 2 instances (not on 360 x 1280).")
    assert best.fails == ("360 x 1280",)
    rows = made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1], [100, 200, 1, 1, 1], "table4")
    fewer = claims("table4", frame(rows))[0]
    assert fewer.fails == ("180 x 640",)
    assert claims("table5", good[good["method"] == "auto"]) == []  # nothing to compare
    assert reading("table5", good.assign(objective=np.nan)) == "No row can be compared; see the notes."


def test_times_are_medians_over_repetitions():
    rows = [
        Row("table5", "180 x 640", 0, r, "auto", 20, objective=0.1, time=t, time_all=t, status="X")
        for r, t in enumerate((5.0, 1.0, 2.0))
    ]
    (line,) = lay_out(frame(rows)).lines
    assert "2" in line.cells
    assert "5" not in line.cells


def test_the_layout_marks_the_best_and_shows_the_figures_of_the_paper():
    rows = run(table5.jobs(sizes=(1,), methods=("l2-APDCA", "auto")))
    layout = lay_out(frame(rows))
    assert [line.best for line in layout.lines] == [False, True]
    assert "paper: objective" in layout.headings
    small = compact(layout)
    place = small.headings.index("objective (paper)")
    assert small.lines[0].cells[place].endswith(" (0.127)")
    assert "(" not in small.lines[1].cells[place]


def test_a_method_is_shown_at_the_papers_own_weight():
    rows = run(table5.jobs(sizes=(1,), methods=("l2-APDCA", "auto")))  # the paper took ρ = 1
    layout = at_papers_weights(rows)
    (line,) = layout.lines  # auto has no weight
    shown = dict(zip(layout.headings, line.cells, strict=True))
    (entry,) = [entry for entry in rows[0].details["weights"] if entry["rho"] == 1.0]
    A, b, k, signs = datasets.table5(1, 0).A, datasets.table5(1, 0).b, 20, datasets.table5(1, 0).nonnegative
    alone = minimize_penalized(
        LeastSquares(A, b), TopK2(1.0, k), C=Nonnegative(signs), method="apdca", x0=np.full(640, 1 / 640)
    )
    left = np.sort(alone.x**2)[:-k].sum()  # the penalty at ρ = 1: what the k largest leave
    F = 0.5 * np.sum((A @ alone.x - b) ** 2) + left
    assert entry["F"] == pytest.approx(F, rel=1e-9)
    assert shown["penalised F"] == f"{F:.4g}"
    assert float(shown["objective"]) > F  # of a k-sparse point
    assert (shown["paper: objective"], shown["paper: iterations"]) == ("0.127", "102")
    assert not any(line.best for line in layout.lines)
    assert at_papers_weights(made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1])).lines == ()


def test_the_tables_as_markdown():
    rows = run(table5.jobs(sizes=(1,), methods=("l2-APDCA", "auto")))
    text = markdown({"table5": rows, "pitprops": run(pitprops.jobs(starts=2, methods=("l2-APDCA",)))})
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert [len(lines) for lines in tables] == [4, 3, 3]  # heads, and a line per row
    assert all(len({re.sub(r"\\\\[|]", "", line).count("|") for line in lines}) == 1 for lines in tables)
    assert tables[0][3].count("**") == 2  # the best objective
    assert "nan" not in text


class Page(HTMLParser):
    """All tags are closed, and nothing is loaded from elsewhere."""

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
    rows_of = {
        "table5": made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1]),
        "pitprops": run(pitprops.jobs(starts=2, methods=("l2-APDCA", "auto"))),
    }
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
    for words in (
        "&lt;file&gt; &amp; more",
        "Fastest: l2-PDCA on 1 of 1",
        "ksparse reproduce all",
        "numpy",
        "width=device-width",
    ):
        assert words in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text)


def test_starts_are_laid_out_by_quartiles():
    table = frame(
        [
            Row("pitprops", "pit props", 0, s, "auto", 5, objective=-float(s), time=0.1, status="OPTIMAL")
            for s in range(5)
        ]
    )
    (line,) = starts_layout(table).lines
    assert line.cells[:5] == ("-4.0000", "-3.0000", "-2.0000", "-1.0000", "0.0000")


def test_rows_cut_off_by_the_limit_are_not_compared():
    rows = made_up([1, 2, 3, 4, 5], [0.3, 0.2, 0.4, 0.5, 0.1])
    rows[0] = replace(rows[0], status="TIME_LIMIT", note="time limit of 1 s reached (best solution found so far)")
    table = frame(rows)
    assert reading("table5", table) == (
        "Fastest: l2-APDCA on 1 of 1. Best objective: auto on 1 of 1. Not compared: 1 row stopped by the time limit."
    )
    assert claims("table5", table) == []  # each needs the row that was cut off


def test_a_rounded_answer_of_an_exact_penalty_says_so():
    rows = run(pitprops.jobs(starts=2, methods=("MIP-DCA", "l2-PDCA")))
    assert [row.note == run_module.ROUNDED for row in rows] == [True, True, False, False]
    assert "rounded because the method itself gave more than k nonzeros: MIP-DCA 2." in reading("pitprops", frame(rows))


def test_rows_hold_their_limit_and_machine():
    (row,) = run(table5.jobs(sizes=(1,), methods=("auto",)), limit=7.0)
    assert row.limit == 7.0
    assert "threads" in row.machine
    text = html({"table5": [row, replace(row, seed=1, limit=9.0, machine="another, 1 core")]}, {}, Made("x", {}))
    for words in ("7 and 9 s per method", "1 rows measured on</dt><dd>another, 1 core"):
        assert words in text
