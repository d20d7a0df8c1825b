"""The package is light: every imported package is declared, and slow imports are lazy."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# import name, and what is installed for it
CALLED = {"sklearn": "scikit-learn", "array_api_compat": "array-api-compat", "IPython": "ipython"}
GUESTS = {"torch", "jax", "cupy"}  # optional: arrays of these libraries are accepted


def names(requirements):
    return {re.match(r"[\w-]+", requirement).group() for requirement in requirements}


def imported(path):
    """Yield the packages that a module imports: (name, whether at import time)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {id(node) for outer in ast.walk(tree) if isinstance(outer, ast.FunctionDef) for node in ast.walk(outer)}
    late |= {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test)
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        found = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        yield from ((name.split(".")[0], id(node) not in late) for name in found if name)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src").rglob("*.py")), ids=lambda path: path.relative_to(ROOT / "src").as_posix()
)
def test_every_import_is_declared(path):
    core = names(PROJECT["dependencies"])
    extras = set().union(
        *(
            names(PROJECT["optional-dependencies"][extra])
            for extra in PROJECT["optional-dependencies"]
            if extra not in ("dev", "docs", "bench")
        )
    )
    room = path.relative_to(ROOT / "src" / "ksparse").parts[0]
    for name, at_once in imported(path):
        if name in sys.stdlib_module_names or name == "ksparse" or name in GUESTS:
            continue
        allowed = core | extras if not at_once or room in ("cli", "experiments", "estimators", "portfolio") else core
        assert CALLED.get(name, name) in allowed, f"{name} is not declared"


def test_every_dependency_has_a_lowest_version():
    done = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, check=True)
    lowest = dict(line.split("==") for line in done.stdout.split() if "==" in line)
    assert names(PROJECT["dependencies"]) < set(lowest)
    assert lowest["numpy"] == "2.0"


def test_slow_imports_are_lazy():
    heavy = (
        "scipy.optimize scipy.linalg scipy.stats sklearn matplotlib pandas rich joblib numba dask pyarrow torch jax "
        "skfolio"
    )
    code = f"""import sys, scipy.sparse
before = set(sys.modules)  # an old SciPy brings more along
import ksparse
print([name for name in {heavy.split()!r} if name in sys.modules and name not in before])"""
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def fragment(table):
    """Return the part of a file that the build cuts out."""
    text = (ROOT / table["path"]).read_text(encoding="utf-8")
    text = text.partition(table["start-after"])[2] if "start-after" in table else text
    return text.partition(table["end-before"])[0] if "end-before" in table else text


def test_the_readme_of_an_index_has_no_link_that_leads_nowhere():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["metadata"]["hooks"][
        "fancy-pypi-readme"
    ]
    assert "](docs/" in (ROOT / "README.md").read_text(encoding="utf-8")
    text = "".join(map(fragment, table["fragments"]))
    for change in table["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert re.findall(r"\]\((?!https?:)", text) == []
    assert "<img" not in text
    assert text.count("███") >= 10  # the picture, in letters
    assert text.count("```") % 2 == 0
    assert "## benchmarks" in text.lower()


def test_the_command_line_says_what_it_needs():
    code = "import sys; sys.modules['rich.console'] = None; from ksparse.cli import main; sys.exit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "the command line needs rich: pip install 'ksparse[cli]'" in done.stderr


def test_the_citation_is_of_this_version():
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{PROJECT['version']}}}" in (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")


def test_modules_that_come_late_are_attributes():
    code = (
        "import ksparse as ks; names = ('datasets', 'estimators', 'experiments', 'plotting'); "
        "print(*(getattr(ks, name).__name__ for name in names))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["ksparse.datasets", "ksparse.estimators", "ksparse.experiments", "ksparse.plotting"]
