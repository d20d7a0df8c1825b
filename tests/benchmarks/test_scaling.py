"""The scaling study: slopes, table, memory, and a whole run on tiny sizes."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))  # scripts, no package

from scaling import parse, sweeps  # noqa: E402
from scaling_measure import METHODS, Job, Row, Shape, input_bytes, measure, peak_extra, planted, rows  # noqa: E402
from scaling_report import HEADINGS, Measured, claim, report, slope, table  # noqa: E402


def row(shape, seconds=1.0, extra=0.0):
    """Return a row whose calls need `extra` times the input beyond it, and twice that for L."""
    size = shape.bytes
    nnz = shape.m * (shape.n if shape.row_nonzeros is None else shape.row_nonzeros)
    needs = {**dict.fromkeys((*METHODS, "auto"), int(extra * size)), "L": int(2 * extra * size)}
    return Row(shape, size, nnz, dict.fromkeys((*METHODS, "auto"), seconds), needs)


def power_law(p):
    return Measured("m", [row(Shape(m, 400, 4), seconds=1e-3 * m**p) for m in (100, 200, 400, 800, 1600)], [])


@pytest.mark.parametrize("p", [-1.0, 0.0, 0.5, 1.0, 2.7])
def test_the_slope_of_a_power_law_is_its_exponent(p):
    values = [3 * 2**i for i in range(6)]
    assert slope(values, [7.0 * v**p for v in values]) == pytest.approx(p, abs=1e-10)


def test_the_slope_ignores_the_lower_half():
    values = [1, 2, 4, 8, 16]
    assert slope(values, [99, 99, 16, 64, 256]) == pytest.approx(2.0)


@pytest.mark.parametrize("values", [[], [5]])
def test_no_slope_from_fewer_than_two_sizes(values):
    assert math.isnan(slope(values, [1.0] * len(values)))


def test_the_table_has_a_line_per_size_and_one_of_slopes():
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table([power_law(1.5)]).splitlines()]
    assert tuple(cells[0]) == HEADINGS
    assert all(len(line) == len(HEADINGS) for line in cells)
    assert [line[1] for line in cells[2:]] == ["100", "200", "400", "800", "1600", "**slope**"]
    assert cells[2][0] == "m (n = 400, k = 4, dense)"
    assert cells[2][3:7] == ["1e+03", "1e+03", "1e+03", "1"]  # milliseconds a step, seconds for auto
    assert cells[2][-3:] == ["1.00 ×"] * 3
    assert cells[-1][2:] == ["**1.00**", *["**1.50**"] * 4, *["**1.00**"] * 3]


def test_the_claim_is_computed():
    part = [Measured("n", [row(Shape(100, n, 4), extra=0.6) for n in (100, 200)], [])]
    alone, with_L = claim(part, dense=True)
    assert "**holds at 2 of 2 sizes**" in alone
    assert "worst 1.60 ×" in alone
    assert "does not hold at 2 of 2 sizes" in with_L
    assert "worst 2.20 ×" in with_L
    assert claim(part, dense=False) == ["- CSR: not measured"]


def test_the_report_says_what_is_missing():
    text = report(
        [power_law(1.0), Measured("k", [], ["3 of 6 dense sizes, for a reason"])], steps=5, repeats=2, threads=1
    )
    assert "left out of the sweep over k: 3 of 6 dense sizes, for a reason" in text
    assert "upper half" in text


def test_memory_of_a_known_allocation():
    size = 8 * 10**6

    def call():
        first = np.ones(size // 8)
        del first
        return [np.ones(size // 16), np.ones(size // 16), np.ones(size // 8)]

    assert peak_extra(call) == pytest.approx(2 * size, rel=1e-3)
    assert peak_extra(lambda: None) < 10_000


@pytest.mark.parametrize("shape", [Shape(30, 50, 3), Shape(60, 50, 3, row_nonzeros=5)], ids=["dense", "csr"])
def test_one_size_measured(shape):
    A, b = planted(shape)
    assert A.shape == (shape.m, shape.n)
    assert 0.8 * shape.bytes <= input_bytes(A, b) <= 1.2 * shape.bytes
    found = measure(shape, Job([shape], steps=3, repeats=1, seconds=60, top_k=False))
    assert found.nnz == np.count_nonzero(A if shape.row_nonzeros is None else A.toarray())
    assert set(found.seconds) == {*METHODS, "auto"}
    assert min(found.seconds.values()) > 0
    assert min(found.extra_bytes.values()) > 8 * (shape.m + shape.n)


def test_no_size_is_begun_without_time_for_it():
    assert list(rows(Job([Shape(20, 30, 2)], steps=2, repeats=1, seconds=-1.0, top_k=True))) == []


@pytest.mark.parametrize("quick", [False, True])
def test_one_variable_moves_by_factors_of_two(quick):
    for sweep in sweeps(quick):
        shapes = np.array([[s.m, s.n, s.k, s.row_nonzeros or 0] for s in sweep.shapes])
        moves = [column for column in shapes.T if len(set(column)) > 1]
        assert len(moves) == 1
        assert np.all(moves[0][1:] == 2 * moves[0][:-1])
        assert len(shapes) >= (3 if quick else 5)
        assert max(shape.bytes for shape in sweep.shapes) < 2**28


def test_bad_options_are_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["--repeats", "0"])
    assert "--repeats must be positive, got 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_run_leaves_a_table_and_four_pictures(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    out = tmp_path / "bench"
    command = [
        sys.executable,
        BENCHMARKS / "scaling.py",
        "--quick",
        "--threads",
        "1",
        "--max-bytes",
        "5e5",
        "--out",
        out,
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "scaling.md", "scaling_k.png", "scaling_m.png", "scaling_n.png", "scaling_nnz.png",
    ]  # fmt: skip
    assert min(path.stat().st_size for path in out.glob("*.png")) > 10_000
    text = (out / "scaling.md").read_text(encoding="utf-8")
    assert text.strip() == done.stdout.strip()
    assert text.count("**slope**") == 5
    assert "- left out of the sweep over m: 1 of 3 dense sizes, the input above --max-bytes 5e+05" in text
