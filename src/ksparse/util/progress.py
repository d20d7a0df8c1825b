"""Progress bars, verbose lines and callbacks of long runs.

`show_progress` turns bars on for the code within; code that counts something opens a `bar`. A bar only holds numbers:
updating it costs two assignments, and a thread draws it a few times per second in a terminal (rich), in a notebook (a
widget) or as lines of a log. Without `show_progress` there is no thread, and `bar` returns a null object.

The lines of `verbose` go to the logger "ksparse" at level INFO, and to standard output if logging is not configured.
"""

from __future__ import annotations

import inspect
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from html import escape
from importlib.util import find_spec
from typing import Any, Protocol, Self, TypeVar

from ksparse.util.arrays import Array
from ksparse.util.checks import check_callable, check_flag, check_integer
from ksparse.util.resources import set_within

EVERY = 0.2  # seconds between two drawings
YOUNG = 0.4  # seconds before a bar is drawn, since bars of short tasks would flicker
SELDOM = 5.0  # seconds between two lines of a log

T = TypeVar("T")
logger = logging.getLogger("ksparse")


class Bar:
    """Progress of one task: its name, how much is done, and a note."""

    def __init__(self, what: str, total: float | None = None) -> None:
        self.what, self.total, self.done, self.note = what, total, 0.0, ""
        self.began = time.perf_counter()

    def update(self, done: float, note: str = "") -> None:
        """Set how much is done: a count if the total is an integer, else an amount of the same unit."""
        self.done, self.note = done, note

    @property
    def share(self) -> float | None:
        """Fraction done, between 0 and 1; None if the total is unknown."""
        return None if self.total is None else min(1.0, self.done / self.total) if self.total > 0 else 1.0

    @property
    def count(self) -> str:
        """Text of how much is done."""
        if self.total is None or self.share is None:
            return ""
        return f"{self.done:.0f}/{self.total}" if isinstance(self.total, int) else f"{100 * self.share:.0f} %"

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Estimated seconds left at the average speed so far; None before any progress."""
        return self.elapsed * (1.0 - self.share) / self.share if self.share else None


class _NullBar(Bar):
    """A bar that is not drawn."""

    def update(self, done: float, note: str = "") -> None:
        """Do nothing."""


NULL_BAR = _NullBar("")


class _OpenBars:
    """Bars that are open, outermost first, and the thread that draws them."""

    def __init__(self, screen: Callable[[], ProgressDisplay]) -> None:
        self._make, self.owner = screen, threading.get_ident()
        self._bars: list[Bar] = []
        self._over, self._drawing = threading.Event(), threading.Thread()

    def open(self, bar: Bar) -> None:
        self._bars.append(bar)
        if len(self._bars) == 1:
            self._over.clear()
            work = self._draw, self._make()
            self._drawing = threading.Thread(target=copy_context().run, args=work, name="ksparse-progress", daemon=True)
            self._drawing.start()

    def close(self, bar: Bar) -> None:
        self._bars.remove(bar)
        if not self._bars:
            self._over.set()
            self._drawing.join()

    def _draw(self, screen: ProgressDisplay) -> None:
        with suppress(OSError):  # the terminal may have been closed
            while not self._over.wait(EVERY):
                screen.draw([bar for bar in tuple(self._bars) if bar.elapsed >= YOUNG])
        with suppress(OSError):
            screen.close()


_open_bars: ContextVar[_OpenBars | None] = ContextVar("open_bars", default=None)


@contextmanager
def show_progress(progress: bool = True) -> Iterator[None]:
    """Show the progress of the code within: bars in a terminal or notebook, log lines elsewhere.

    Searches, proofs, paths over k, cross-validation, batches and passes over data on disk are shown. Tasks shorter than
    half a second are not, and bars are removed at the end. Work that joblib sends to other processes appears as one
    task.

    Parameters
    ----------
    progress : bool, default=True
        False has no effect: an outer `show_progress` stays in force.

    Yields
    ------
    None
        Progress is shown until the block ends.

    Raises
    ------
    ImportError
        In a terminal, if rich is not installed (ksparse[progress]).

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
    if not check_flag(progress, "progress") or _open_bars.get() is not None:
        yield
        return
    with shown_on(screen_here()):
        yield


def shown_on(screen: Callable[[], ProgressDisplay]) -> AbstractContextManager[None]:
    """Draw the bars within on a display that `screen` returns, a new one for each outermost bar."""
    return set_within(_open_bars, _OpenBars(screen))


@contextmanager
def bar(what: str, total: float | None = None) -> Iterator[Bar]:
    """Open a progress bar; a null bar unless this thread called `show_progress`."""
    shown = _open_bars.get()
    if shown is None or shown.owner != threading.get_ident():  # bars of parallel threads are not drawn
        yield NULL_BAR
        return
    one = Bar(what, total)
    shown.open(one)
    try:
        yield one
    finally:
        shown.close(one)


def track(items: Collection[T], what: str) -> Iterator[T]:
    """Yield the items, counted on a bar."""
    with bar(what, len(items)) as one:
        for done, item in enumerate(items):
            one.update(done)
            yield item
            one.update(done + 1)


class ProgressDisplay(Protocol):
    """Draws all bars anew each time, and removes them at the end."""

    def draw(self, bars: Sequence[Bar]) -> None: ...

    def close(self) -> None: ...


def screen_here() -> Callable[[], ProgressDisplay]:
    """Return the display class for a notebook, a terminal (if standard error is one) or a log."""
    if _in_notebook():
        return NotebookScreen
    if sys.stderr is None or not sys.stderr.isatty():
        return LogScreen
    if find_spec("rich") is None:
        raise ImportError("progress in a terminal needs rich: pip install 'ksparse[progress]'")
    return TerminalScreen


def _in_notebook() -> bool:
    """Return whether this runs in a Jupyter kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if needed."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def times(bar: Bar) -> str:
    """Return the elapsed and the estimated remaining time as text."""
    left = bar.left
    return clock(bar.elapsed) + ("" if left is None else f", {clock(left)} left")


class TerminalScreen:
    """Lines at the foot of the terminal, on standard error, below any printed output."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        to_terminal = sys.stdout.isatty()  # a redirected standard output is left alone
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=to_terminal)

    def draw(self, bars: Sequence[Bar]) -> None:
        """Draw all bars, one line each."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if not bars and not self._live.is_started:
            return
        grid = Table.grid(padding=(0, 1))
        for bar in bars:
            drawn = ProgressBar(total=1.0, completed=bar.share or 0.0, pulse=bar.share is None, width=30)
            words = (Text(word, no_wrap=True, overflow="ellipsis") for word in (bar.count, times(bar), bar.note))
            grid.add_row(Text(bar.what, no_wrap=True), drawn, *words)
        self._live.start()
        self._live.update(grid, refresh=True)

    def close(self) -> None:
        """Remove the lines."""
        self._live.stop()


class NotebookScreen:
    """A widget under the cell; without ipywidgets, HTML output that is replaced."""

    def __init__(self) -> None:
        self._show: Callable[[str], Any] | None = None
        self._end: Callable[[], Any] = lambda: None

    def _begin(self) -> Callable[[str], Any]:
        from IPython.display import HTML, display

        if find_spec("ipywidgets") is None:
            handle = display(HTML(""), display_id=True)
            self._end = lambda: handle.update(HTML(""))
            return lambda page: handle.update(HTML(page))
        import ipywidgets

        widget = ipywidgets.HTML()
        display(widget)
        self._end = widget.close
        return lambda page: setattr(widget, "value", page)

    def draw(self, bars: Sequence[Bar]) -> None:
        """Draw all bars, one row each."""
        if not bars and self._show is None:
            return
        self._show = self._show or self._begin()
        self._show(f'<table style="margin:0">{"".join(map(_row, bars))}</table>')

    def close(self) -> None:
        """Remove the rows."""
        self._end()


def _row(bar: Bar) -> str:
    value = "" if bar.share is None else f' value="{bar.share:.4f}"'  # without a value the bar is indeterminate
    drawn = f'<progress aria-label="{escape(bar.what)}"{value}></progress>'
    cells = (escape(bar.what), drawn, *map(escape, (bar.count, times(bar), bar.note)))
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


class LogScreen:
    """A line on standard error every few seconds, for files and logs."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def draw(self, bars: Sequence[Bar]) -> None:
        """Print one line for all bars, if it is time for one."""
        if bars and sys.stderr is not None and time.perf_counter() - self._last >= SELDOM:
            self._last = time.perf_counter()
            line = "; ".join(" ".join(word for word in (bar.what, bar.count, bar.note) if word) for bar in bars)
            print(f"{line}; {times(bars[0])}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing: log lines stay."""


class _Stdout(logging.Handler):
    """Handler that prints to the current sys.stdout."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stdout)


class VerboseLogging:
    """Context in which lines sent to the logger are shown, also if logging is not configured."""

    def __init__(self, verbose: int) -> None:
        self.verbose = check_integer(verbose, "verbose", 0)
        self._handler: logging.Handler | None = None
        self._level = logger.level

    def __enter__(self) -> Self:
        if self.verbose and not logger.hasHandlers():
            self._handler = _Stdout()
            logger.addHandler(self._handler)
        if self.verbose and not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)
        return self

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            logger.removeHandler(self._handler)
        logger.setLevel(self._level)


class ProgressCallback(Protocol):
    """Calls the user's callback with a copy of x (made on demand), F, iteration, residual, seconds and more."""

    def __call__(
        self, x: Callable[[], Array], F: float, t: int, residual: float, elapsed: float, **more: Any
    ) -> None: ...


def as_scipy_callback(callback: Callable[..., Any] | None) -> ProgressCallback:
    """Return a function that calls back with an `intermediate_result` if the parameter has that name, else with x."""
    if callback is None:
        return lambda x, F, t, residual, elapsed, **more: None
    check_callable(callback, "callback")
    try:
        by_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]
    except ValueError:  # a builtin without a signature
        by_result = False

    def tell(x: Callable[[], Array], F: float, t: int, residual: float, elapsed: float, **more: Any) -> None:
        if by_result:
            from scipy.optimize import OptimizeResult  # slow to import

            result = OptimizeResult(x=x(), fun=F, nit=t, residual=residual, elapsed=elapsed, **more)
            callback(intermediate_result=result)
        else:
            callback(x())

    return tell
