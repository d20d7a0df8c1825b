"""How far a long run has come, for the parts that no argument reaches: folds, values of k, a proof, the rows of a file.

`show_progress` says that it is to be shown, for all that runs within; whoever has something to count opens a `bar`. A bar is plain numbers:
to move it costs two assignments, and a thread of its own draws what it finds there a few times in a second. Where nobody asked, there is no
thread, and all bars are one that forgets what it is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import TypeVar

from ksparse.base.checks import check_flag
from ksparse.base.screens import Screen, screen_here

EVERY = 0.2  # seconds between two drawings
YOUNG = 0.4  # seconds before a bar is drawn: what is over by then needs none, and bars that come and go would flicker

T = TypeVar("T")


class Bar:
    """One line: what is done, how much of it, and a word on where that stands."""

    def __init__(self, what: str, total: float | None = None) -> None:
        self.what, self.total, self.done, self.note = what, total, 0.0, ""
        self.began = time.perf_counter()

    def at(self, done: float, note: str = "") -> None:
        """So much is done; of a total that is a whole number that many things, else a share of it."""
        self.done, self.note = done, note

    @property
    def share(self) -> float | None:
        """Between 0 and 1; None where nobody knows how much there is to do."""
        return None if self.total is None else min(1.0, self.done / self.total) if self.total > 0 else 1.0

    @property
    def count(self) -> str:
        """How much is done, in words."""
        if self.total is None or self.share is None:
            return ""
        return f"{self.done:.0f}/{self.total}" if isinstance(self.total, int) else f"{100 * self.share:.0f} %"

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes if it goes on as it went; None before there is anything to go by."""
        return self.elapsed * (1.0 - self.share) / self.share if self.share else None


class _Forgetful(Bar):
    """A bar that nobody sees."""

    def at(self, done: float, note: str = "") -> None:
        """Nothing."""


NOWHERE = _Forgetful("")


class _Shown:
    """The bars that are open now, the outermost first, and the thread that draws them while there are any."""

    def __init__(self, screen: Callable[[], Screen]) -> None:
        self._make, self._owner = screen, threading.get_ident()
        self._bars: list[Bar] = []
        self._over, self._drawing = threading.Event(), threading.Thread()
        self._screen: Screen | None = None

    @property
    def here(self) -> bool:
        """Whether this is the thread that asked: others run beside each other, and a line for each would be too many."""
        return threading.get_ident() == self._owner

    def open(self, bar: Bar) -> None:
        self._bars.append(bar)
        if len(self._bars) > 1:
            return
        self._screen = self._make()
        self._over.clear()
        self._drawing = threading.Thread(target=copy_context().run, args=(self._draw, self._screen), name="ksparse-progress", daemon=True)
        self._drawing.start()

    def close(self, bar: Bar) -> None:
        self._bars.remove(bar)
        if not self._bars and self._screen is not None:
            self._over.set()
            self._drawing.join()
            screen, self._screen = self._screen, None
            with suppress(OSError):  # a terminal that went away takes no answer with it
                screen.close()

    def _draw(self, screen: Screen) -> None:
        while not self._over.wait(EVERY):
            bars = [bar for bar in tuple(self._bars) if bar.elapsed >= YOUNG]
            try:
                screen.draw(bars)
            except OSError:  # as when it is closed
                return


_shown: ContextVar[_Shown | None] = ContextVar("shown", default=None)


@contextmanager
def show_progress(progress: bool = True) -> Iterator[None]:
    """Show how far all that runs within has come: bars in a terminal and in a notebook, elsewhere a line now and then.

    Searches, proofs, paths over k, cross-validation, batches and passes over data on disk, of functions and estimators alike. What is over
    in half a second shows nothing, and nothing stays on the screen. Work that joblib sends to other processes is seen only as a whole.

    Parameters
    ----------
    progress : bool, default=True
        False changes nothing: an outer one stays in force.

    Yields
    ------
    None
        It is shown until the block ends.

    Raises
    ------
    ImportError
        In a terminal, if rich is missing: it comes with ksparse[progress].

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> with ks.show_progress():
    ...     model = ks.SparseRegressorCV(ks=range(1, 6)).fit(A, b)
    >>> int(model.k_)
    3
    """
    if not check_flag(progress, "progress") or _shown.get() is not None:
        yield
        return
    with shown_on(screen_here()):
        yield


@contextmanager
def shown_on(screen: Callable[[], Screen]) -> Iterator[None]:
    """Bars within are drawn on what `screen` makes, each time that an outermost one begins."""
    token = _shown.set(_Shown(screen))
    try:
        yield
    finally:
        _shown.reset(token)


@contextmanager
def bar(what: str, total: float | None = None) -> Iterator[Bar]:
    """A line of progress while it lasts: seen where someone asked for it, in the thread that did."""
    shown = _shown.get()
    if shown is None or not shown.here:
        yield NOWHERE
        return
    one = Bar(what, total)
    shown.open(one)
    try:
        yield one
    finally:
        shown.close(one)


def over(items: Collection[T], what: str) -> Iterator[T]:
    """The items one by one, counted on a bar."""
    with bar(what, len(items)) as one:
        for done, item in enumerate(items):
            one.at(done)
            yield item
            one.at(done + 1)
