"""What the documents show runs as printed."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import ksparse as ks

ROOT = Path(__file__).parent.parent


def test_readme_example_runs_as_printed():
    failures, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried >= 9
    assert failures == 0


def test_every_public_name_of_the_contract_exists():
    contract = """LeastSquares Quadratic MeanVariance PrincipalComponent Logistic Huber Poisson Custom autodiff
    WholeSpace L2Ball Hyperplane Nonnegative Box Simplex BudgetBox L1Ball Polyhedron CustomSet
    L1 CappedL1 LogSum SCAD MCP L1MinusL2 TopK1 TopK2 minimize minimize_penalized k_path Result InfeasibleError APDCA FixedStep"""
    assert [name for name in contract.split() if not hasattr(ks, name)] == []
    assert [name for name in ks.__all__ if not hasattr(ks, name)] == []


def test_links_between_documents_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run_and_leave_pictures(script, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if "skfolio" in script.read_text():
        pytest.importorskip("skfolio", reason="skfolio is not installed")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    pictures = list(tmp_path.rglob("*.png"))
    assert pictures
    assert all(picture.stat().st_size > 10_000 for picture in pictures)
