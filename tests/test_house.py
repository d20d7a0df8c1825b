"""The house keeps its order: imports go one way, and nobody asks a piece for its class."""

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest

import ksparse as ks

HOUSE = Path(__file__).parents[1] / "src" / "ksparse"
ROOMS = [  # each may use those before it
    "errors", "util", "result", "numerics", "data", "losses", "sets", "penalties", "firstorder", "search", "batch",
    "certify", "solve", "datasets", "estimator_base", "linear", "components", "portfolio", "estimators", "skfolio",
    "plotting", "experiments", "cli", "__main__",
]  # fmt: skip
PIECES = ("losses", "sets", "penalties", "firstorder/methods")
ABSTRACT = {"Loss", "ConvexSet", "Penalty", "Method"}  # what a piece is at all may be asked at the door


def modules():
    return sorted(path for path in HOUSE.rglob("*.py") if path != HOUSE / "__init__.py")


def room_of(path):
    return path.relative_to(HOUSE).with_suffix("").parts[0]


def imported_rooms(tree):
    """The rooms that a module imports from, lazily or not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "ksparse":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ksparse."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("ksparse."))


@cache  # asked for every module
def pieces():
    """The concrete losses, sets, penalties and methods, and the room each lives in."""
    found = {}
    for room in PIECES:
        for path in (HOUSE / room).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in ABSTRACT:
                    found[node.name] = room
    return found


def test_every_module_is_in_a_room():
    assert {room_of(path) for path in modules()} <= set(ROOMS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_go_one_way(path):
    order = {room: place for place, room in enumerate(ROOMS)}
    for room in imported_rooms(ast.parse(path.read_text(encoding="utf-8"))):
        assert order[room] <= order[room_of(path)], f"{room} comes after {room_of(path)}"


def classes_asked_for(tree):
    """The names in the second argument of every isinstance and issubclass, and in `type(x) is …`."""
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


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(HOUSE)))
def test_nobody_asks_a_piece_for_its_class(path):
    where = path.relative_to(HOUSE).as_posix()
    known = {name for name, room in pieces().items() if not where.startswith(room)}
    asked = known.intersection(classes_asked_for(ast.parse(path.read_text(encoding="utf-8"))))
    assert not asked, f"{where} asks for the class {', '.join(sorted(asked))}: ask the piece what it can do"


def test_tests_that_need_an_optional_library_are_marked():
    """CI runs `-m needs` where the libraries are installed: a test that only skips itself would never run."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"importorskip\(.(torch|jax)", text):
            assert "pytestmark = pytest.mark.needs(" in text, f"{path.name}: mark tests with pytest.mark.needs"


def test_few_settings_each_documented():
    """Numbers that a user would not change are constants beside their formula."""
    names = [field.name for field in dataclasses.fields(ks.SearchSettings)]
    assert len(names) <= 20
    documented = re.findall(r"^    (\w+) : .*, default=", ks.SearchSettings.__doc__, re.MULTILINE)
    assert documented == names


def test_the_greps_find_breaches():
    tree = ast.parse(
        "def f(x):\n    from ksparse.cli import main\n    return isinstance(x, L2Ball | int) or type(x) is LeastSquares"
    )
    assert list(imported_rooms(tree)) == ["cli"]
    assert {"L2Ball", "LeastSquares"} <= set(classes_asked_for(tree)) & set(pieces())
