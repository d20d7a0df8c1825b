"""Check that every public name has a docstring in numpydoc's form: python docs/check_docstrings.py (in `make lint`).

The checks are those of [tool.numpydoc_validation] in pyproject.toml. What comes back to the user lists its fields as
Attributes, which numpydoc does not count as parameters: here they are.
"""

import inspect
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

MODULES = ["ksparse", "ksparse.datasets", "ksparse.plotting", *(["ksparse.skfolio"] if find_spec("skfolio") else [])]
# some fifty fields with their reasons at their lines; an enumeration
UNCOUNTED = {"ksparse.SearchSettings", "ksparse.Status"}
METHODS = {"PR01", "PR02", "PR04", "PR07", "RT01", "RT03", "GL08"}  # what is asked of the methods of estimators too
CHECKS = set(
    tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "numpydoc_validation"
    ]["checks"]
)


def public() -> Iterator[tuple[str, bool]]:
    """Yield every public class, function and estimator method by its path, and whether it is an estimator method."""
    for module in MODULES:
        space = import_module(module)
        for name in space.__all__:
            piece = getattr(space, name)
            if not callable(piece):
                continue
            yield f"{module}.{name}", False
            if inspect.isclass(piece) and hasattr(piece, "get_params"):
                own = [
                    part for part in vars(piece) if not part.startswith("_") and inspect.isfunction(vars(piece)[part])
                ]
                yield from ((f"{module}.{name}.{part}", True) for part in own if part != "get_metadata_routing")


def faults(path: str, method: bool = False) -> list[str]:
    """Return the faults of a docstring in numpydoc's words."""
    wanted, found = CHECKS & METHODS if method else CHECKS, []
    for code, text in validate(path)["errors"]:
        if code == "PR01" and (path in UNCOUNTED or _listed(path)):
            continue
        if code in wanted:
            found.append(f"{path}: {code} {text}")
    return found


def _listed(path: str) -> bool:
    """Whether all fields missing from the Parameters are among the Attributes, or private."""
    piece = Validator._load_obj(path)
    if not inspect.isclass(piece):
        return False
    told = Validator(get_doc_object(piece))
    attributes = {name for entry in told.doc["Attributes"] for name in entry.name.split(", ")}
    fields = {name for name in told.signature_parameters if not name.startswith("_")}
    return fields <= attributes | set(told.doc_parameters)


def main() -> int:
    """Print the faults."""
    names = list(public())
    wrong = [fault for path, method in names for fault in faults(path, method)]
    print("\n".join(wrong) if wrong else f"numpydoc: {len(names)} public names, no fault")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
