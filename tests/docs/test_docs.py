"""What the documents show runs as printed."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import ksparse as ks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "examples"), [("README.md", 9), ("docs/estimators.md", 15)])
def test_examples_on_a_page_run_as_printed(page, examples):
    failures, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert tried >= examples
    assert failures == 0


def test_every_public_name_of_the_contract_exists():
    contract = """LeastSquares Quadratic MeanVariance PrincipalComponent Logistic Huber Poisson Custom autodiff
    WholeSpace L2Ball Hyperplane Nonnegative Box Simplex BudgetBox L1Ball Polyhedron CustomSet
    L1 CappedL1 LogSum SCAD MCP L1MinusL2 TopK1 TopK2 minimize minimize_penalized k_path Result InfeasibleError APDCA FixedStep
    SparseRegressor SparseClassifier SparseRegressorCV SparseClassifierCV SparsePCA SparsePortfolio"""
    assert [name for name in contract.split() if not hasattr(ks, name)] == []
    assert [name for name in ks.__all__ if not hasattr(ks, name)] == []


def test_links_between_documents_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.slow
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


def test_an_unknown_name_is_an_attribute_error_and_known_ones_are_listed():
    with pytest.raises(AttributeError, match="module 'ksparse' has no attribute 'SparseMagic'"):
        ks.SparseMagic  # noqa: B018
    assert "SparseRegressor" in dir(ks)
