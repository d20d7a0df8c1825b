"""Docstrings are complete and their examples run; scikit-learn's page of an estimator shows every parameter."""

import doctest
import html
import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ksparse as ks

ROOT = Path(__file__).parents[2]
MODULES = ("ksparse", "ksparse.datasets", "ksparse.plotting")
ESTIMATORS = [name for name in ks.__all__ if name.startswith("Sparse") and hasattr(getattr(ks, name), "get_params")]


@pytest.fixture(scope="module")
def check():
    pytest.importorskip("numpydoc", reason="numpydoc is not installed")
    spec = importlib.util.spec_from_file_location("check_docstrings", ROOT / "docs" / "check_docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_documented(check, capsys):
    assert check.main() == 0, capsys.readouterr().out
    assert len(list(check.public())) > 100


@pytest.mark.parametrize(
    ("fault", "lost", "instead"),
    [
        ("PR01", r"radius : float, default=1\n(    .*\n)+", ""),
        ("PR04", "radius : float, default=1", "radius"),
        ("PR07", r"(?<=radius : float, default=1\n)(    .*\n)+", ""),
        ("EX01", "Examples\n--------", "Notes\n-----"),
    ],
)
def test_the_check_finds_what_is_missing(check, monkeypatch, fault, lost, instead):
    text = inspect.getdoc(ks.L2Ball)
    faulty, count = re.subn(lost, instead, text)
    assert count == 1
    monkeypatch.setattr(ks.L2Ball, "__doc__", faulty)
    assert any(fault in found for found in check.faults("ksparse.L2Ball"))


def public():
    spaces = {module: importlib.import_module(module) for module in MODULES}
    return [
        f"{module}.{name}"
        for module, space in spaces.items()
        for name in space.__all__
        if callable(getattr(space, name))
    ]


@pytest.mark.parametrize("path", public())
def test_the_example_of_a_docstring_runs_as_printed(path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    module, _, name = path.rpartition(".")
    piece = getattr(importlib.import_module(module), name)
    if name in ("L1DCA", "MIPDCA"):
        pytest.importorskip("clarabel", reason="clarabel is not installed")
    (test,) = doctest.DocTestFinder(recurse=False).find(piece, name, globs={})
    assert test.examples
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0
    sys.modules["matplotlib.pyplot"].close("all") if "matplotlib.pyplot" in sys.modules else None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_shows_every_parameter_with_its_text(name):
    pytest.importorskip("sklearn", minversion="1.8", reason="scikit-learn shows no texts before 1.8")
    model = getattr(ks, name)()
    page = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", model._repr_html_())).split())
    said = dict(re.findall(r"^(\w+) : .*\n    (.*)$", inspect.getdoc(type(model)), re.MULTILINE))
    for parameter in model.get_params():
        assert " ".join(said[parameter].split()) in page, parameter


@pytest.mark.slow
def test_a_misspelt_name_fails_the_type_checker(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    fine, misspelt = (
        ("ks.SparseRegressor(k=3)", "ks.plotting.plot_cv", "ks.datasets.diabetes"),
        ("ks.SparseRegresor(k=3)", "ks.ploting"),
    )
    (tmp_path / "use.py").write_text("\n".join(["import ksparse as ks", *fine, *misspelt, ""]))
    if (ROOT / ".mypy_cache").exists():  # of `make lint`: what it has read of the library need not be read again
        shutil.copytree(ROOT / ".mypy_cache", tmp_path / "cache")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    environment = {"MYPYPATH": str(ROOT / "src"), "PATH": ""}
    done = subprocess.run(
        [*command, str(tmp_path / "use.py")], capture_output=True, text=True, cwd=ROOT, env=environment
    )
    assert done.returncode == 1
    assert re.findall(r'use.py:(\d+): error: Module has no attribute "(\w+)"', done.stdout) == [
        ("5", "SparseRegresor"),
        ("6", "ploting"),
    ]
