"""Print the lowest versions that pyproject.toml allows, as requirements for `make test-lowest`.

python .ci/lowest.py > requirements.txt
"""

import re
import tomllib
from pathlib import Path

EXTRAS = ("baselines", "plot", "progress", "cli", "dask")  # not skfolio, whose own lowest versions are above ours
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "array-api-strict", "h5py", "zarr")  # of the extra dev


def requirements() -> list[str]:
    """Return the lowest versions of the dependencies, then the tools as declared."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    ours = [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    tools = [line for line in extras["dev"] if re.match(r"[\w-]+", line).group() in TOOLS]
    return sorted({_lowest(line) for line in ours}) + sorted(tools)


def _lowest(line: str) -> str:
    found = re.fullmatch(r"([\w-]+)(\[[\w,]+\])?>=([\d.]+)", line)
    if found is None:
        raise SystemExit(f"{line!r} has no lowest version: write it as name>=version")
    name, parts, version = found.groups()
    return f"{name}{parts or ''}=={version}"


if __name__ == "__main__":
    print("\n".join(requirements()))
