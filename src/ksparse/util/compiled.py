"""Loops compiled by numba, which is imported when the first of them runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from ksparse.util.arrays import Vector
from ksparse.util.progress import bar
from ksparse.util.resources import imported

# annotations that fix the type of an argument, for loops that are compiled in one version: contiguous arrays
Numbers: TypeAlias = Vector
Table: TypeAlias = Vector
Places: TypeAlias = Vector
PlaceTable: TypeAlias = Vector
PlaceCube: TypeAlias = Vector
Mask: TypeAlias = Vector
T = TypeVar("T")
# tuples of them, for the search of a batch
Problem: TypeAlias = tuple[Table, Numbers, Mask, float]  # G, r, the mask of the signs, and ½‖b‖²
Solved: TypeAlias = tuple[Places, Table, Numbers]  # the slots S of a support, with M = G_SS⁻¹ and x = M r_S
Swaps: TypeAlias = tuple[Table, Numbers, Numbers, Table]  # P, q, d and the gains of swaps
_TYPES = {
    "Numbers": "f8[::1]", "Table": "f8[:, ::1]", "Places": "i8[::1]", "PlaceTable": "i8[:, ::1]",
    "PlaceCube": "i8[:, :, ::1]", "Mask": "b1[::1]",
    "Problem": "Tuple((f8[:, ::1], f8[::1], b1[::1], f8))", "Solved": "Tuple((i8[::1], f8[:, ::1], f8[::1]))",
    "Swaps": "Tuple((f8[:, ::1], f8[::1], f8[::1], f8[:, ::1]))",
    "int": "i8", "float": "f8", "bool": "b1", "None": "void",
}  # fmt: skip


def _import_numba() -> Any:
    """Import numba, with the modules that the first compilation would import."""
    target = import_module("numba.core.registry").cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()
    event: Any = import_module("numba.core.event")
    event.register("numba:compile", _notice(event.Listener))
    return import_module("numba")


def _notice(listener: Any) -> Any:
    """Return a listener of numba that opens a progress bar while it compiles."""
    opened: list[Any] = []  # one for each compilation, which may begin another

    class Notice(listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            opened.append(bar("compiling (once)"))
            opened[-1].__enter__()

        def on_end(self, event: Any) -> None:
            opened.pop().__exit__(None, None, None)

    return Notice()


def inlined(loop: T) -> T:
    """Mark a short function whose calls are too many to be calls: its code takes their place."""
    loop.inlined = True  # type: ignore[attr-defined]
    return loop


@cache
def compiled(loop: Callable[..., Any], *, from_python: bool = True) -> Callable[..., Any]:
    """Return the loop compiled to machine code, with the functions of its module that it calls.

    The code is cached on disk if possible, beside the source or in the user's cache folder, and runs without the
    interpreter lock. If all annotations are in `_TYPES`, there is one version, compiled at once; otherwise one for each
    combination of types, compiled when it is called.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    options |= {"no_cpython_wrapper": not from_python, "no_cfunc_wrapper": True, "no_rewrites": True}
    options |= {"forceinline": hasattr(loop, "inlined")}
    types = {name: _TYPES.get(hint, "") for name, hint in loop.__annotations__.items()}
    returned = types.pop("return", "")
    signature = [f"{returned}({', '.join(types.values())})"] if returned and all(types.values()) else []
    known = loop.__globals__
    functions = {name: known[name] for name in loop.__code__.co_names if isinstance(known.get(name), FunctionType)}
    called = {name: each for name, each in functions.items() if each.__module__ == loop.__module__}
    helpers = {name: compiled(each, from_python=False) for name, each in called.items()}
    loop = FunctionType(loop.__code__, known | helpers, loop.__name__)
    njit: Any = imported(_import_numba).result().njit
    try:
        quick: Callable[..., Any] = njit(*signature, cache=True, **options)(loop)
    except RuntimeError:  # no writable cache folder
        quick = njit(*signature, **options)(loop)
    return quick
