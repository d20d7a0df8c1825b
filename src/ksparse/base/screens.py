"""What bars are drawn on: a terminal by rich, a notebook by a widget, or lines now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ksparse.base.progress import Bar

SELDOM = 5.0  # seconds between two lines of a log


class Screen(Protocol):
    """Draws bars, all of them anew each time, and leaves nothing behind."""

    def draw(self, bars: Sequence[Bar]) -> None: ...

    def close(self) -> None: ...


def screen_here() -> Callable[[], Screen]:
    """What suits the place: a notebook, a terminal (where standard error is one), or a log."""
    if _in_notebook():
        return NotebookScreen
    if sys.stderr is None or not sys.stderr.isatty():
        return LogScreen
    if find_spec("rich") is None:
        raise ImportError("progress in a terminal needs rich: pip install 'ksparse[progress]'")
    return TerminalScreen


def _in_notebook() -> bool:
    """Whether a kernel runs this, which a front end shows pages of."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def times(bar: Bar) -> str:
    """How long it has taken, and will take."""
    left = bar.left
    return clock(bar.elapsed) + ("" if left is None else f", {clock(left)} left")


class TerminalScreen:
    """Lines at the foot of the terminal, on standard error; what is printed meanwhile stands above them."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        # standard output is left alone where it goes elsewhere: what is printed there must arrive there
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty())

    def draw(self, bars: Sequence[Bar]) -> None:
        """All bars, one line each."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if not bars and not self._live.is_started:
            return
        grid = Table.grid(padding=(0, 1))
        for bar in bars:
            drawn = ProgressBar(total=1.0, completed=bar.share or 0.0, pulse=bar.share is None, width=30)
            words = (bar.count, times(bar), bar.note)
            grid.add_row(Text(bar.what, no_wrap=True), drawn, *(Text(word, no_wrap=True, overflow="ellipsis") for word in words))
        self._live.start()
        self._live.update(grid, refresh=True)

    def close(self) -> None:
        """The lines are taken away."""
        self._live.stop()


class NotebookScreen:
    """A widget under the cell; without ipywidgets a page that is replaced, which every front end knows too."""

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
        """All bars, one row each."""
        if not bars and self._show is None:
            return
        self._show = self._show or self._begin()
        self._show(f'<table style="margin:0">{"".join(map(_row, bars))}</table>')

    def close(self) -> None:
        """The rows are taken away."""
        self._end()


def _row(bar: Bar) -> str:
    value = "" if bar.share is None else f' value="{bar.share:.4f}"'  # without one it only says that something goes on
    drawn = f'<progress aria-label="{escape(bar.what)}"{value}></progress>'
    cells = (escape(bar.what), drawn, *map(escape, (bar.count, times(bar), bar.note)))
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


class LogScreen:
    """A line on standard error now and then, for files and logs."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def draw(self, bars: Sequence[Bar]) -> None:
        """One line for all bars, if it is time for one."""
        if bars and sys.stderr is not None and time.perf_counter() - self._last >= SELDOM:
            self._last = time.perf_counter()
            told = "; ".join(" ".join(word for word in (bar.what, bar.count, bar.note) if word) for bar in bars)
            print(f"{told}; {times(bars[0])}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Lines stay where they are."""
