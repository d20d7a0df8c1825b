"""HTML reports, standard input and output, completion and help."""

import io
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from browser import find_browser, look_at
from command import ENVIRONMENT, ksparse
from ksparse import datasets

pd = pytest.importorskip("pandas", reason="pandas is not installed")

NASTY = '<img src=x onerror="alert(1)"> & co'
COMMANDS = {
    "regress": ("--target", "progression", "-k", 3, "--gap", "1%"),
    "pca": ("-k", 3, "--components", 2),
    "portfolio": ("-k", 4, "--long-only", "--returns", "--max-weight", "0.5"),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    X, y, names = datasets.diabetes()
    names = [NASTY if name == "bmi" else name for name in names]
    pd.DataFrame(X, columns=names).assign(progression=y, same=2.0 * X[:, 3] + 1e-4 * np.sin(np.arange(442))).to_csv(
        folder / "regress.csv", index=False
    )
    pd.DataFrame(X, columns=names).to_csv(folder / "pca.csv", index=False)
    assets = datasets.factor_model(12, 120, seed=0)
    pd.DataFrame(assets.returns, columns=[NASTY, *assets.names[1:]]).to_csv(folder / "portfolio.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def pages(tables):
    for name, options in COMMANDS.items():
        done = ksparse(name, f"{name}.csv", *options, "--report", f"{name}.html", cwd=tables)
        assert f"written: {name}.html" in done.stdout
    return {name: (tables / f"{name}.html").read_text(encoding="utf-8") for name in COMMANDS}


class Tags(HTMLParser):
    """Collect the tags of a page and what they load."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.loads = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_report_is_whole_escaped_and_needs_nothing_else(pages, name):
    page = pages[name]
    tags = Tags(page)
    assert tags.loads == []
    assert {"script", "img"}.isdisjoint(tags.seen)
    assert tags.seen.count("svg") >= 2
    assert f"ksparse {name} {name}.csv" in page
    for words in (
        "Objective for neighbouring k",
        "Data warnings",
        "<h2>Command</h2>",
        "prefers-color-scheme: dark",
        "@media print",
    ):
        assert words in page


def test_a_report_shows_the_gap_and_neighbouring_k(pages):
    page = pages["regress"]
    assert "proved optimal" in page or "(proved)" in page
    assert "lower bound" in page
    assert "3 (selected)" in page
    assert "Almost perfectly correlated columns, of which either may be chosen: bp and same" in page
    values = [float(value) for value in re.findall(r"<td>\d+(?: \(selected\))?</td><td>([-\d.e]+)</td>", page)]
    assert len(values) == 7  # k = 1 to 7
    assert all(np.diff(values) <= 1e-9)


@pytest.mark.parametrize("width", [1200, 360], ids=["desk", "phone"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_report_shows_in_a_browser(pages, name, width, tmp_path):
    _, images, drawings = look_at(find_browser(), pages[name], width, tmp_path)
    assert images == 0
    assert drawings == pages[name].count("<svg")


def test_a_report_leaves_files_that_exist_alone(tables):
    (tables / "there.html").write_text("mine")
    done = ksparse("pca", "pca.csv", "-k", 2, "--report", "there.html", cwd=tables, expect=2)
    assert "there.html exists" in done.stderr
    assert (tables / "there.html").read_text() == "mine"


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "npz"])
def test_tables_of_every_kind_come_in_by_standard_input_and_go_out(tables, kind):
    table = pd.read_csv(tables / "pca.csv")
    buffer = io.BytesIO()
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        table.to_parquet(buffer)
    elif kind == "npz":
        np.savez(buffer, X=table.to_numpy(), names=np.array(table.columns, dtype=str))
    else:
        how = {"compression": "gzip"} if kind == "csv.gz" else {}
        table.to_csv(buffer, index=False, sep="\t" if kind == "tsv" else ",", **how)
    command = [sys.executable, "-m", "ksparse", "pca", "-", "-k", "2", "--out", "-"]
    done = subprocess.run(
        command, input=buffer.getvalue(), capture_output=True, env=ENVIRONMENT, timeout=300, check=True
    )
    loadings = pd.read_csv(io.BytesIO(done.stdout))
    assert list(loadings.columns) == ["component", "column", "loading"]
    assert len(loadings) == 2
    assert np.linalg.norm(loadings["loading"]) == pytest.approx(1.0)


def test_trouble_with_standard_streams_is_named(tables):
    command = [sys.executable, "-m", "ksparse", "pca", "-", "-k", "2"]
    done = subprocess.run(command, input=b"a,b\n1,2,3\n", capture_output=True, env=ENVIRONMENT, timeout=300)
    assert done.returncode == 2
    assert b"standard input: row 1 has 3 fields" in done.stderr
    done = ksparse("pca", "pca.csv", "-k", 2, "--out", "-", "--json", cwd=tables, expect=2)
    assert "both want standard output" in done.stderr
    done = ksparse("pca", "pca.csv", "-k", 2, "--out", "-", "--report", "-", cwd=tables, expect=2)
    assert "both want standard output" in done.stderr


def test_help_has_examples_and_every_exit_code(tmp_path):
    for command in ("demo", "reproduce", "regress", "pca", "portfolio"):
        text = ksparse(command, "--help", cwd=tmp_path).stdout
        assert f"  ksparse {command} " in text
        assert re.findall(r"^  (\d+) +\w", text, re.MULTILINE) == ["0", "1", "2", "3", "4", "130"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_covers_every_command(tmp_path, shell):
    pytest.importorskip("shtab", reason="shtab is not installed")
    script = ksparse("--completion", shell, cwd=tmp_path).stdout
    assert all(word in script for word in ("regress", "portfolio", "--report", "--long-only"))
