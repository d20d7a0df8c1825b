"""Array namespaces and matrix kinds on which the pieces are tested."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
from hypothesis import settings
from scipy.sparse.linalg import aslinearoperator

settings.register_profile("ksparse", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=200)  # `make fuzz`: other examples every time
settings.load_profile(os.environ.get("KSPARSE_EXAMPLES", "ksparse"))


# word in the name of a case: the library that the case needs
OPTIONAL = {"torch": "torch", "cuda": "torch", "jax": "jax"}


def cases(names):
    """Return `names` as parameters; a name that contains a word of OPTIONAL is marked as needing that library."""
    return [
        pytest.param(
            name,
            marks=[pytest.mark.needs(library) for word, library in OPTIONAL.items() if word in str(name)],
            id=str(name),
        )
        for name in names
    ]


def sweep(values, always=1):
    """Return `values` as parameters, all but the first `always` marked `sweep` (run by `make test-all`)."""
    values = list(values)
    return [
        *values[:always],
        *(pytest.param(*(v if isinstance(v, tuple) else (v,)), marks=pytest.mark.sweep) for v in values[always:]),
    ]


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Skip tests whose optional libraries are missing, and mark the first case of every quick test as `slice`.

    Of the commands, which run in processes of their own, and of the benchmarks' harness, the slice takes one file each.
    """
    taken = set()
    for item in items:
        missing = [name for marker in item.iter_markers("needs") for name in marker.args if find_spec(name) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"{' and '.join(missing)} not installed"))
        test = item.nodeid.partition("[")[0]
        aside = item.path.parent.name in ("cli", "benchmarks") and item.path.name not in (
            "test_cli_tables.py",
            "test_benchmark_tables.py",
        )
        long = item.get_closest_marker("slow") or item.get_closest_marker("sweep")
        if test not in taken and not long and not aside:
            taken.add(test)
            item.add_marker("slice")


class OnlyMatmul:
    """Smallest possible data matrix: an object with shape, @ and .T."""

    def __init__(self, A):
        self._A = A
        self.shape = A.shape

    @property
    def T(self):
        return OnlyMatmul(self._A.T)

    def __matmul__(self, v):
        return self._A @ v


MATRIX_KINDS = {
    "dense": lambda A: A,
    "fortran": np.asfortranarray,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_matrix,
    "coo": scipy.sparse.coo_array,
    "operator": aslinearoperator,
    "object": OnlyMatmul,
}


@pytest.fixture
def rng():
    return np.random.default_rng(20170130)


def _torch_kind(dtype, device="cpu"):
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return lambda v: torch.tensor(np.asarray(v), dtype=getattr(torch, dtype), device=device)


NAMESPACES = {
    "numpy64": lambda: lambda v: np.asarray(v, dtype=np.float64),
    "numpy32": lambda: lambda v: np.asarray(v, dtype=np.float32),
    "strict64": lambda: lambda v: array_api_strict.asarray(np.asarray(v), dtype=array_api_strict.float64),
    "strict32": lambda: lambda v: array_api_strict.asarray(np.asarray(v), dtype=array_api_strict.float32),
    "torch64": lambda: _torch_kind("float64"),
    "torch32": lambda: _torch_kind("float32"),
    "cuda64": lambda: _torch_kind("float64", "cuda"),
}


@pytest.fixture(params=cases(NAMESPACES))
def asarray(request):
    """Convert a NumPy array to one of the tested namespaces and dtypes."""
    return NAMESPACES[request.param]()


def data_file(name: str) -> Path:
    """Return the path of a real data file, or skip the test with the name and place of the file."""
    folder = os.environ.get("KSPARSE_DATA")
    path = Path(folder or ".") / name
    if folder is None or not path.exists():
        pytest.skip(f"needs the data file {name} in the folder named by KSPARSE_DATA")
    return path
