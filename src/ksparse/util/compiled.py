"""Loops compiled by numba, which is imported when the first of them runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@cache
def compiler_is_there() -> bool:
    """Whether loops can be compiled."""
    return find_spec("numba") is not None


@cache
def _numba() -> Any:
    """Import numba whole.

    An import that Ctrl-C ends half-way leaves modules behind that break every later one. Only the main thread gets the interrupt, so
    another thread imports; after an interrupt it finishes first.
    """
    with ThreadPoolExecutor(1) as other:
        return other.submit(import_module, "numba").result()


@cache
def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop in machine code, kept on disk between processes where numba finds a place for it; it holds no lock while it runs."""
    njit: Any = _numba().njit
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        quick: Callable[..., None] = njit(cache=True, **options)(loop)
    except RuntimeError:  # nowhere to write
        quick = njit(**options)(loop)
    return quick
