"""Structure of the package: imports go one way, and code never branches on the concrete class of a piece."""

import ast
import dataclasses
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import ksparse as ks

PACKAGE = Path(__file__).parents[1] / "src" / "ksparse"
SUBPACKAGES = [  # in order of import: each may import those before it
    "errors", "util", "result", "numerics", "data", "losses", "sets", "penalties", "firstorder", "search", "batch",
    "certify", "solve", "datasets", "estimator_base", "linear", "components", "portfolio", "estimators", "skfolio",
    "plotting", "experiments", "cli", "__main__",
]  # fmt: skip
PIECES = ("losses", "sets", "penalties", "firstorder/methods")
ABSTRACT = {"Loss", "ConvexSet", "Penalty", "Method"}  # checks of arguments may test for these


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def subpackage_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_subpackages(tree):
    """Yield the subpackages that a module imports from, at the top or in a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "ksparse":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ksparse."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("ksparse."))


@cache
def pieces():
    """Return the concrete losses, sets, penalties and methods, each with its subpackage."""
    found = {}
    for folder in PIECES:
        for path in (PACKAGE / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in ABSTRACT:
                    found[node.name] = folder
    return found


def test_every_module_belongs_to_a_listed_subpackage():
    assert {subpackage_of(path) for path in modules()} <= set(SUBPACKAGES)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    order = {name: position for position, name in enumerate(SUBPACKAGES)}
    for name in imported_subpackages(ast.parse(path.read_text(encoding="utf-8"))):
        assert order[name] <= order[subpackage_of(path)], f"{name} comes after {subpackage_of(path)}"


def classes_in_type_checks(tree):
    """Yield the names in the second argument of isinstance and issubclass, and in `type(x) is …`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            yield from (name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name))
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Call)
            and getattr(node.left.func, "id", "") == "type"
        ):
            yield from (name.id for side in node.comparators for name in ast.walk(side) if isinstance(name, ast.Name))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_tests_for_a_concrete_class(path):
    where = path.relative_to(PACKAGE).as_posix()
    others = {name for name, folder in pieces().items() if not where.startswith(folder)}
    tested = others.intersection(classes_in_type_checks(ast.parse(path.read_text(encoding="utf-8"))))
    assert not tested, f"{where} tests for the class {', '.join(sorted(tested))}: use a capability method instead"


def test_tests_that_need_an_optional_library_are_marked():
    """CI runs `-m needs` where the libraries are installed: without the mark a skipped test would never run."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"importorskip\(.(torch|jax)", text):
            assert "pytestmark = pytest.mark.needs(" in text, f"{path.name}: mark tests with pytest.mark.needs"


def test_few_settings_each_documented():
    """Numbers that a user would not change are constants next to their formula."""
    names = [field.name for field in dataclasses.fields(ks.SearchSettings)]
    assert len(names) <= 20
    documented = re.findall(r"^(\w+) : .*, default=", inspect.getdoc(ks.SearchSettings), re.MULTILINE)
    assert documented == names


def test_the_checks_find_violations():
    tree = ast.parse(
        "def f(x):\n    from ksparse.cli import main\n    return isinstance(x, L2Ball | int) or type(x) is LeastSquares"
    )
    assert list(imported_subpackages(tree)) == ["cli"]
    assert {"L2Ball", "LeastSquares"} <= set(classes_in_type_checks(tree)) & set(pieces())
