"""Loops compiled by numba, which is imported when the first of them runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _numba() -> Any:
    """Import numba, in a thread.

    If Ctrl-C interrupts the import, the modules left behind break every later import of numba. Only the main thread
    receives the interrupt, so another thread imports and finishes first.
    """
    with ThreadPoolExecutor(1) as other:
        return other.submit(import_module, "numba").result()


@cache
def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """Return the loop compiled to machine code, cached on disk if possible; it runs without the interpreter lock."""
    njit: Any = _numba().njit
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        quick: Callable[..., None] = njit(cache=True, **options)(loop)
    except RuntimeError:  # no writable cache folder
        quick = njit(**options)(loop)
    return quick
