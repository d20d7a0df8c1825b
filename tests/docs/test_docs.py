"""Examples in the documents give the printed results."""

import doctest
import re
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import ksparse as ks
from conftest import cases

ROOT = Path(__file__).parents[2]


PAGES = {  # a page, and how many examples it has at least
    "README.md": 11, "docs/index.md": 8, "docs/estimators.md": 19, "docs/scale.md": 12, "docs/own_pieces.md": 15,
    "docs/proofs.md": 4, "docs/paper.md": 3, "docs/coming_from.md": 15, "docs/guide/features.md": 15,
    "docs/guide/portfolio.md": 24, "docs/guide/component.md": 8, "docs/batches.md": 10, "docs/own_losses.md": 9,
    "docs/guide/proof.md": 8, "docs/rules.md": 25, "docs/common_features.md": 20, "docs/guide/long_runs.md": 14,
    "docs/guide/factors.md": 25,
}  # fmt: skip


def blocks_of(page):
    """Return the fenced blocks of a page as (language, text)."""
    return re.findall(r"^```(.*?)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def needs_jax(block):
    return "jax" in block


WITH_JAX = [
    page for page in PAGES if any(language == "python" and needs_jax(block) for language, block in blocks_of(page))
]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs_as_printed(page):
    """Run definitions and sessions of a page in one namespace, and compare the printed results."""
    run_blocks(page, lambda block: not needs_jax(block))


@pytest.mark.needs("jax")
@pytest.mark.parametrize("page", WITH_JAX)
def test_every_block_of_a_page_with_jax_runs_as_printed(page):
    run_blocks(page, lambda block: True)


def run_blocks(page, chosen):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    space = {"__name__": "page"}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for place, (language, block) in enumerate(blocks_of(page)):
        if (
            language != "python"
            or not chosen(block)
            or any(name in block and find_spec(name) is None for name in ("skfolio", "dask"))
        ):
            continue
        if block.startswith(">>>"):
            runner.run(parser.get_doctest(block, space, f"block {place}", page, 0), clear_globs=False)
            space.update(runner.test.globs)
        else:
            exec(compile(block, f"{page}, block {place}", "exec"), space)
    assert runner.failures == 0
    assert runner.tries >= PAGES[page]
    sys.modules["matplotlib.pyplot"].close("all") if "matplotlib.pyplot" in sys.modules else None


def test_no_python_on_any_page_is_left_out():
    """A block is Python, and run, or has no language: a command or a listing."""
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "guide").glob("*.md"),
    ]
    for page in pages:
        languages = {language for language, _ in blocks_of(page)}
        where = page.relative_to(ROOT).as_posix()
        assert languages <= {"python", "", "{include} ../CONTRIBUTING.md", "{include} ../CHANGELOG.md"}, where
        assert "python" not in languages or where in PAGES, where


def test_what_own_pieces_promises_exists():
    """Every name in the table is a name of the base class or of the module of its pieces."""
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
    L1 CappedL1 LogSum SCAD MCP L1MinusL2 TopK1 TopK2 minimize minimize_penalized k_path Result InfeasibleError
    APDCA FixedStep
    Loss DataFit ConvexSet Penalty Separable Method QuadraticModel Squares Linear SearchSettings
    SparseRegressor SparseClassifier SparseRegressorCV SparseClassifierCV SparsePCA SparsePortfolio near_optimal
    Design blocks operator minimize_many show_progress Batch check_gradient GradientCheck Cox Quantile Gamma Tweedie
    NegativeBinomial factors selection_stability standard_errors"""
    assert [name for name in contract.split() if not hasattr(ks, name)] == []
    assert [name for name in ks.__all__ if not hasattr(ks, name)] == []


def test_links_between_documents_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        if "generated" in page.parts or "gallery" in page.parts:
            continue
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            made = target.startswith(("../gallery/", "gallery/"))  # by `make docs`, which checks them
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.slow
@pytest.mark.parametrize("script", cases(path.stem for path in sorted((ROOT / "examples").glob("*.py"))))
def test_examples_run_and_draw(script, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    import matplotlib.pyplot as plt

    script = ROOT / "examples" / f"{script}.py"
    if "skfolio" in script.read_text(encoding="utf-8"):
        pytest.importorskip("skfolio", reason="skfolio is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for place, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{place}.png", dpi=100)
        assert (tmp_path / f"{place}.png").stat().st_size > 8_000
    plt.close("all")


def test_an_unknown_name_is_an_attribute_error_and_known_ones_are_listed():
    with pytest.raises(AttributeError, match="module 'ksparse' has no attribute 'SparseMagic'"):
        ks.SparseMagic  # noqa: B018
    assert "SparseRegressor" in dir(ks)
