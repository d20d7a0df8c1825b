"""Progress bars: where they are shown, what they count, and no cost without them."""

import io
import sys
import threading
import types

import numpy as np
import pytest

import ksparse as ks
from ksparse.util import progress
from ksparse.util.resources import parallel_map


class Wall:
    """A display that keeps what was drawn on it."""

    def __init__(self):
        self.drawn, self.closed = [], False

    def draw(self, bars):
        self.drawn.append([bar.what for bar in bars])

    def close(self):
        self.closed = True


@pytest.fixture
def moves(monkeypatch):
    """Record (what, share) for every update of every bar."""
    seen, at = [], progress.Bar.update

    def noted(self, done, note=""):
        at(self, done, note)
        seen.append((self.what, self.share))

    monkeypatch.setattr(progress.Bar, "update", noted)
    return seen


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 30))
    return A, A[:, :5] @ rng.standard_normal(5) + rng.standard_normal(80)


def regressor_cv(A, b):
    return ks.SparseRegressorCV(ks=[1, 2], cv=3).fit(A, b)


def classifier_cv(A, b):
    return ks.SparseClassifierCV(ks=[1, 2], cv=3, criterion="cv").fit(A[:, :6], np.digitize(b, [-1.0, 1.0]))


def stability(A, b):
    return ks.selection_stability(ks.SparseRegressor(k=2), A[:, :6], b, n_subsamples=3)


def frontier(A, b):
    return ks.SparsePortfolio(k=3).frontier(0.01 * A, points=3)


def many(A, b):
    return ks.minimize_many(A, np.column_stack([b, -b, A[:, 0]]), 3)


def many_in_a_box(A, b):
    return ks.minimize_many(A[:, :6], np.column_stack([b, -b]), 2, ks.Box(-0.1, 0.1))


def on_disk(A, b):
    return ks.minimize(ks.LeastSquares(ks.blocks(Rows(A), height=20), b), 3)


class Rows:
    """Rows of unknown storage, not in memory."""

    def __init__(self, A):
        self._A, self.shape, self.dtype = A, A.shape, A.dtype

    def __getitem__(self, rows):
        return self._A[rows]


@pytest.mark.parametrize(
    ("work", "whats"),
    [
        (lambda A, b: ks.minimize(ks.LeastSquares(A, b), 4, gap=0.01), {"search, k = 4", "proof"}),
        (lambda A, b: ks.minimize(ks.LeastSquares(A, b), 4, method="apdca", rho=[0.1, 1.0]), {"weights", "apdca"}),
        (lambda A, b: ks.minimize_penalized(ks.LeastSquares(A, b), ks.L1(1.0)), {"apdca"}),
        (lambda A, b: ks.k_path(ks.LeastSquares(A, b), [1, 2, 4], gap=0.1), {"path", "proof", "search, k = 4"}),
        (lambda A, b: ks.near_optimal(ks.LeastSquares(A, b), 3, within=0.02), {"nearly optimal supports"}),
        (lambda A, b: ks.SparsePCA(n_components=2, k=2).fit(A[:, :8]), {"components"}),
        (regressor_cv, {"paths, growing", "paths, shrinking"}),
        (classifier_cv, {"folds", "path"}),
        (stability, {"subsamples"}),
        (frontier, {"frontier"}),
        (many, {"3 right-hand sides"}),
        (many_in_a_box, {"2 right-hand sides"}),
        (on_disk, {"pass 1 over the data", "pass 2 over the data"}),
    ],
    ids=lambda value: getattr(value, "__name__", "whats"),
)
def test_long_work_counts_what_it_does(work, whats, data, moves):
    wall = Wall()
    with progress.shown_on(lambda: wall):
        work(*data)
    assert whats <= {what for what, _ in moves}
    assert all(share is None or 0 <= share <= 1 for _, share in moves)
    assert wall.closed
    assert not any(thread.name == "ksparse-progress" for thread in threading.enumerate())


def test_what_is_counted_never_falls(data, moves):
    with progress.shown_on(Wall):
        ks.minimize(ks.LeastSquares(*data), 4, gap=0.0)
    shares = [share for what, share in moves if what == "proof"]
    assert shares == sorted(shares)
    assert shares[0] == 0 < shares[-1]


def test_no_bar_is_shown_by_default(data, moves, capfd):
    ks.minimize(ks.LeastSquares(*data), 4, gap=0.01)
    assert capfd.readouterr() == ("", "")
    assert not moves  # all went to the one that forgets


def test_the_answer_is_the_same(data):
    plain = ks.minimize(ks.LeastSquares(*data), 4, gap=0.01)
    shown = ks.minimize(ks.LeastSquares(*data), 4, gap=0.01, progress=True)
    np.testing.assert_array_equal(plain.x, shown.x)
    assert plain.nodes == shown.nodes


@pytest.mark.parametrize("solve", [ks.minimize, ks.near_optimal, lambda loss, k, **more: ks.k_path(loss, [k], **more)])
def test_progress_is_a_flag(solve, data):
    with pytest.raises(TypeError, match="progress must be True or False, got 'yes'"):
        solve(ks.LeastSquares(*data), 2, progress="yes")
    with pytest.raises(TypeError, match="progress must be True or False"):
        ks.minimize_many(data[0], data[1][:, None], 2, progress=2)


def test_a_thread_draws_what_it_finds_and_stops(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(progress, "YOUNG", 0.0)
    wall, drawn = Wall(), threading.Event()
    monkeypatch.setattr(
        wall, "draw", lambda bars: drawn.set() if [bar.what for bar in bars] == ["outer", "inner"] else None
    )
    with progress.shown_on(lambda: wall), progress.bar("outer", 2), progress.bar("inner"):
        assert drawn.wait(30)
        assert not wall.closed
    assert wall.closed


def test_bars_close_when_work_breaks():
    wall = Wall()
    with progress.shown_on(lambda: wall), pytest.raises(ZeroDivisionError):
        sum(1 / i for i in progress.track([1, 0], "tries"))
    assert wall.closed


def test_a_terminal_that_went_away_takes_no_answer_with_it():
    class Gone(Wall):
        def close(self):
            raise OSError(5, "Input/output error")

    with progress.shown_on(Gone), progress.bar("work"):
        answer = 3
    assert answer == 3


def test_threads_beside_each_other_open_no_bars():
    with progress.shown_on(Wall), progress.bar("outer"):

        def work(i):
            with progress.bar("inner") as one:
                return one is progress.NULL_BAR, threading.current_thread() is threading.main_thread()

        assert set(parallel_map(work, range(4), 2)) == {(True, False)}


def test_the_outermost_one_counts():
    wall = Wall()
    with progress.shown_on(lambda: wall), ks.show_progress(), ks.show_progress(False), progress.bar("one") as one:
        assert one is not progress.NULL_BAR
    assert wall.closed


def bars():
    one, other = progress.Bar("folds", 5), progress.Bar("<proof>", 1.0)
    one.update(2)
    other.update(0.25, "gap 3 %")
    return [one, other, progress.Bar("search")]


def test_a_log_gets_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SELDOM", 0.0)
    screen = progress.LogScreen()
    screen.draw([])
    screen.draw(bars())
    screen.close()
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("folds 2/5; <proof> 25 % gap 3 %; search; 0:00, 0:00 left")
    assert progress.screen_here() is progress.LogScreen  # here, where standard error is a file


def test_a_terminal_gets_bars_and_keeps_none(monkeypatch):
    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    screen_of = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen_of)
    monkeypatch.setattr(screen_of, "isatty", lambda: True, raising=False)
    assert progress.screen_here() is progress.TerminalScreen
    screen = progress.TerminalScreen()
    screen.draw([])
    assert not screen_of.getvalue()  # nothing before there is something to say
    screen.draw(bars())
    shown = screen_of.getvalue()
    for words in ("folds", "2/5", "<proof>", "25 %", "gap 3 %", "0:00"):
        assert words in shown
    screen.close()
    assert "\x1b[2K" in screen_of.getvalue()[len(shown) :]  # lines are erased


def test_a_terminal_without_rich_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'ksparse\[progress\]'"), ks.show_progress():
        pass


@pytest.mark.parametrize("widgets", [True, False], ids=["ipywidgets", "without"])
def test_a_notebook_gets_one_page_that_changes(monkeypatch, widgets):
    shown, pages = [], []
    handle = types.SimpleNamespace(update=pages.append)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.HTML = str
    ipython.display.display = lambda what, display_id=False: shown.append(what) or handle
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    widget = types.SimpleNamespace(value="", close=lambda: pages.append("closed"))
    monkeypatch.setitem(sys.modules, "ipywidgets", types.SimpleNamespace(HTML=lambda: widget))
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if widgets else None)
    assert progress.screen_here() is progress.NotebookScreen
    screen = progress.NotebookScreen()
    screen.draw([])
    assert not shown
    screen.draw(bars())
    page = widget.value if widgets else pages[-1]
    assert '<progress aria-label="folds" value="0.4000">' in page
    assert "&lt;proof&gt;" in page
    assert '<progress aria-label="search"></progress>' in page  # of unknown length
    screen.close()
    assert pages[-1] == ("closed" if widgets else "")
    assert len(shown) == 1


def test_a_real_kernel_shows_a_widget_and_takes_it_away():
    nbclient, nbformat = (
        pytest.importorskip(name, reason=f"{name} is not installed") for name in ("nbclient", "nbformat")
    )
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    code = """
import time
import ksparse as ks
from ksparse.util.progress import bar
with ks.show_progress(), bar("folds", 4) as one:
    one.update(1)
    time.sleep(1.5)
"""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, kernel_name="python3").execute()
    kinds = [set(output.get("data", {})) for output in book.cells[0].outputs]
    assert kinds
    assert all("text/html" in kind or "application/vnd.jupyter.widget-view+json" in kind for kind in kinds)


def test_clocks():
    assert [progress.clock(seconds) for seconds in (0.2, 59.6, 3_600)] == ["0:00", "1:00", "1:00:00"]
