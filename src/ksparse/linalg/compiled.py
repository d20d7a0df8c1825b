"""Compiled loops where numba is installed (`pip install 'ksparse[fast]'`); each has a way to do without."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any


@cache
def compiler_is_there() -> bool:
    """Whether loops can be compiled."""
    return find_spec("numba") is not None


@cache
def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop in machine code, kept on disk between processes where numba finds a place for it; it holds no lock while it runs."""
    import numba

    njit: Any = numba.njit
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        quick: Callable[..., None] = njit(cache=True, **options)(loop)
    except RuntimeError:  # nowhere to write
        quick = njit(**options)(loop)
    return quick
