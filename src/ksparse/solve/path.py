"""All k along one path: each k starts from its neighbours, shrunk from the one above and grown from the one below."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.result import Result
from ksparse.search.settings import SearchSettings
from ksparse.sets import ConvexSet
from ksparse.solve.by_search import make_plan, make_wanted
from ksparse.solve.request import check_request, fitting_threads, support_problem
from ksparse.solve.walk import Walk
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer
from ksparse.util.evaluations import counting
from ksparse.util.progress import VerboseLogging, logger, show_progress
from ksparse.util.resources import deadline_scope

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class KPath:
    """The answers for every k asked for, ascending; the objective never rises with k. What `k_path` returns.

    Attributes
    ----------
    results : list of Result
        One per k; `path[k]` is that of k.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> path = ks.k_path(ks.LeastSquares(A, b), [1, 2, 3])
    >>> path[3].support.tolist(), len(path)
    ([0, 1, 2], 3)
    """

    results: list[Result]

    @property
    def ks(self) -> Vector:
        """The numbers of nonzeros allowed."""
        return np.array([result.k for result in self.results])

    @property
    def objective(self) -> Vector:
        """φ at each answer."""
        return np.array([result.fun for result in self.results])

    @property
    def x(self) -> Vector:
        """The answers, one per row."""
        return np.array([np.asarray(result.x) for result in self.results])

    @property
    def supports(self) -> list[Vector]:
        """The nonzeros of each answer."""
        return [result.support for result in self.results]

    @property
    def entered(self) -> list[Vector]:
        """The variables that are in an answer and were not in the one before."""
        return [np.setdiff1d(now, before) for before, now in self._pairs()]

    @property
    def left(self) -> list[Vector]:
        """The variables that were in the answer before and are not in this one."""
        return [np.setdiff1d(before, now) for before, now in self._pairs()]

    def _pairs(self) -> list[tuple[Vector, Vector]]:
        supports = self.supports
        return list(zip([np.zeros(0, dtype=np.intp), *supports], supports, strict=False))

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, k: int) -> Result:
        """The answer for at most k nonzeros."""
        for result in self.results:
            if result.k == k:
                return result
        raise KeyError(f"k = {k} is not on the path, which has {', '.join(map(str, self.ks))}")

    def _rows(self) -> list[tuple[str, ...]]:
        def listed(members: Vector) -> str:
            return ", ".join(map(str, members[:8])) + (", ..." if members.size > 8 else "")

        triples = zip(self.results, self.entered, self.left, strict=True)
        return [
            (str(r.k), f"{r.fun:.8g}", r.status.name, listed(entered), listed(left)) for r, entered, left in triples
        ]

    def __repr__(self) -> str:
        lines = [
            f"{k:>5} {fun:>16} {status:>17}  {entered}" + (f"  without {left}" if left else "")
            for k, fun, status, entered, left in self._rows()
        ]
        return "\n".join([f"{'k':>5} {'objective':>16} {'status':>17}  enters", *lines])

    def _repr_html_(self) -> str:
        """What a notebook shows: the objective against k, and a line per k."""
        objective = [float(value) for value in self.objective]
        chart = (
            display.curve([float(k) for k in self.ks], objective, "objective against k")
            if np.isfinite(objective).all()
            else ""
        )
        return f'<div class="ksparse-path">{chart}{display.grid(("k", "objective", "status", "enters", "leaves"), self._rows())}</div>'

    def to_frame(self) -> pd.DataFrame:
        """One row per k."""
        import pandas as pd

        columns = {"k": self.ks, "objective": self.objective, "nonzeros": [s.size for s in self.supports]}
        columns |= {"status": [r.status.name for r in self.results], "entered": self.entered, "left": self.left}
        return pd.DataFrame(columns)


def k_path(
    loss: Loss,
    ks: Iterable[int],
    C: ConvexSet | None = None,
    *,
    x0: Any = None,
    forced_in: Any = (),
    forced_out: Any = (),
    min_nonzero: Any = 0.0,
    groups: Any = None,
    group_limits: Any = None,
    requires: Any = None,
    effort: int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    gap: float | None = None,
    max_nodes: int | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    max_time: float | None = None,
    settings: SearchSettings | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    progress: bool = False,
) -> KPath:
    """The best point of C with at most k nonzeros, for every k of `ks`.

    The largest k, and a few below, each half of the last, are solved as `minimize` does. Then every k is searched from the answer above,
    less its least useful variables, and from the answer below, which has room for another. An answer below is also one for k, so that the
    objective never rises with k.

    Parameters
    ----------
    loss : Loss
        φ.
    ks : iterable of int
        The numbers of nonzeros allowed.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    x0 : array-like or None, default=None
        A start; its support is searched from too.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support.
    min_nonzero : float or array-like, default=0.0
        Least size of a nonzero, one number or one per variable.
    groups : array-like or None, default=None
        A label for each variable: those of one label enter the support together or not at all, and k counts such groups.
    group_limits : tuple or None, default=None
        (labels, {label: (least, most)}): a label for each variable, and how many of a label must and may be in the support; None for no
        most. With `groups` it counts groups.
    requires : dict or None, default=None
        {child: parents}, in indices: a variable is in the support only with its parents. Members of a support may be 0, and count all the
        same.
    effort : int or None, default=None
        Whole searches, from other seeds, of which the best counts; more is never worse. None for one, or with max_time as many as bring
        something in the time.
    n_jobs : int or None, default=None
        Threads to run searches, and to bound a tree's nodes, in.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the first search; the same seed gives the same answer, whatever n_jobs.
    gap : float or None, default=None
        Go on after the search until it is proved that no k-sparse point is better than the answer by more than this share of the value
        (0.01 for 1 %). `lower_bound`, `gap` and `nodes` of the result say how far that came, whatever stopped it; where no bound can be had
        its message says why.
    max_nodes : int or None, default=None
        Nodes of the tree at most.
    tol : float, default=1e-5
        Relative change at which first-order runs end.
    max_iter : int, default=10000
        Iterations at most, of all k together.
    max_time : float or None, default=None
        Seconds for the whole path.
    settings : SearchSettings or None, default=None
        The numbers that steer the search, where the defaults will not do.
    callback : callable or None, default=None
        Called as scipy calls one: with `intermediate_result` if that is its parameter's name, else with x. StopIteration ends the run.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show bars while it runs, as `show_progress` does.

    Returns
    -------
    KPath
        The answers, ascending in k.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it must be; the message names it. Nothing has been computed by then.
    InfeasibleError
        If C holds no point with at most k nonzeros; the message says why.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> path = ks.k_path(ks.LeastSquares(A, b), range(1, 5))
    >>> [entered.tolist() for entered in path.entered[:3]]
    [[1], [2], [0]]
    >>> bool((np.diff(path.objective) <= 0).all())
    True
    """
    sizes, by_entries = _sizes(ks), gap is not None or bool(np.any(min_nonzero))
    stopping = Stopping(tol=tol, max_iter=max_iter, max_time=max_time)
    # asks whether C has a point for the least k
    request = check_request(
        loss, sizes[0], C, x0, stopping, callback, verbose, "ks", groups, group_limits, requires, by_entries=by_entries
    )
    top = replace(request, k=check_integer(sizes[-1], "ks", 1, request.members))
    problem = support_problem(request, forced_in, forced_out, min_nonzero, settings, most=top.k)
    plan = make_plan(1 if effort is None else effort, n_jobs, random_state, "auto")
    walk = Walk(top, problem, sizes, plan, make_wanted(gap, max_nodes, plan.n_jobs))
    quiet = np.errstate(over="ignore", invalid="ignore")
    with (
        show_progress(progress),
        VerboseLogging(verbose),
        deadline_scope(top.deadline),
        fitting_threads(top.loss),
        counting(),
        quiet,
    ):
        walk.go()
        results = walk.judged()
        if verbose:
            for result in results:
                logger.info("%s", f"k = {result.k:>5} {result.fun:>16.9e} {result.message}")
    return KPath(results)


def _sizes(ks: Iterable[int]) -> list[int]:
    if not isinstance(ks, Iterable) or isinstance(ks, str):
        raise TypeError(f"ks must hold the numbers of nonzeros to solve for, such as range(1, 11), got {ks!r}")
    sizes = sorted({check_integer(k, "ks", 1) for k in ks})
    if not sizes:
        raise ValueError("ks must hold at least one k, got none")
    return sizes
