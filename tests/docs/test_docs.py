"""What the documents show runs as printed."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import ksparse as ks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "examples"),
    [("README.md", 11), ("docs/estimators.md", 19), ("docs/scale.md", 9), ("docs/batches.md", 10), ("docs/own_losses.md", 9)],
)
def test_examples_on_a_page_run_as_printed(page, examples):
    failures, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert tried >= examples
    assert failures == 0


def test_every_block_of_own_pieces_runs():
    """Definitions as they are, sessions as printed, all in one namespace."""
    space, page = {"__name__": "own_pieces"}, (ROOT / "docs" / "own_pieces.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 15
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for place, block in enumerate(blocks):
        if block.startswith(">>>"):
            runner.run(parser.get_doctest(block, space, f"block {place}", "docs/own_pieces.md", 0), clear_globs=False)
            space.update(runner.test.globs)
        else:
            exec(compile(block, f"docs/own_pieces.md, block {place}", "exec"), space)
    assert runner.tries >= 15
    assert runner.failures == 0


def test_what_own_pieces_promises_exists():
    """Every name in the table is one that the base class, or the space of its pieces, has."""
    bases = {"loss": ks.Loss, "set": ks.ConvexSet, "penalty": ks.Penalty, "method": ks.Method}
    page, piece, seen = (ROOT / "docs" / "own_pieces.md").read_text(encoding="utf-8"), "", 0
    for row in re.findall(r"^\| (\w*) ?\| (.*?) \|", page, re.MULTILINE):
        piece = row[0] or piece
        for name in re.findall(r"`([a-z_0-9]+)", row[1]) if piece in bases else ():
            assert hasattr(bases[piece], name), f"{piece}.{name}"
            seen += 1
    assert seen >= 25


def test_every_public_name_of_the_contract_exists():
    contract = """LeastSquares Quadratic MeanVariance PrincipalComponent Logistic Huber Poisson Custom autodiff
    WholeSpace L2Ball Hyperplane Nonnegative Box Simplex BudgetBox L1Ball Polyhedron CustomSet
    L1 CappedL1 LogSum SCAD MCP L1MinusL2 TopK1 TopK2 minimize minimize_penalized k_path Result InfeasibleError APDCA FixedStep
    Loss DataFit ConvexSet Penalty Separable Method QuadraticModel Squares Linear SearchSettings
    SparseRegressor SparseClassifier SparseRegressorCV SparseClassifierCV SparsePCA SparsePortfolio near_optimal Design blocks
    minimize_many Batch check_gradient GradientCheck Cox Quantile Gamma Tweedie
    NegativeBinomial selection_stability standard_errors"""
    assert [name for name in contract.split() if not hasattr(ks, name)] == []
    assert [name for name in ks.__all__ if not hasattr(ks, name)] == []


def test_links_between_documents_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run_and_leave_pictures(script, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if "skfolio" in script.read_text():
        pytest.importorskip("skfolio", reason="skfolio is not installed")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    pictures = list(tmp_path.rglob("*.png"))
    assert bool(pictures) == (".png" in script.read_text(encoding="utf-8"))
    assert all(picture.stat().st_size > 10_000 for picture in pictures)


def test_an_unknown_name_is_an_attribute_error_and_known_ones_are_listed():
    with pytest.raises(AttributeError, match="module 'ksparse' has no attribute 'SparseMagic'"):
        ks.SparseMagic  # noqa: B018
    assert "SparseRegressor" in dir(ks)
