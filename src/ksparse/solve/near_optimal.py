"""Not one support but all that are nearly as good: variables that are in all of them, others that may be exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.certify.prove import Progress, near_supports
from ksparse.errors import MissingPieceError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.result import Result
from ksparse.search.explore import Plan
from ksparse.search.settings import SearchSettings
from ksparse.sets import ConvexSet
from ksparse.solve.judge import judge_search, value_of
from ksparse.solve.minimize import Report, exploration
from ksparse.solve.request import check_request, fitting_threads, support_problem
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer, check_number
from ksparse.util.evaluations import counting
from ksparse.util.progress import bar, show_progress
from ksparse.util.resources import deadline_scope

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class NearOptimal:
    """Supports whose best value is within a share of the best of all: what `near_optimal` returns.

    Attributes
    ----------
    best : Result
        The answer that `minimize` gives, or a better one that was met.
    supports : list of ndarray
        The nonzeros, the best first.
    values : ndarray
        φ at the best point on each.
    x : ndarray
        Those points, one per row.
    within : float
        The share that was asked for.
    complete : bool
        Whether it is proved that there are no others.
    message : str
        The same in words, with the reason.
    nodes : int
        Of the tree.
    elapsed : float
        Seconds.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> ks.near_optimal(ks.LeastSquares(A, b), 3, within=0.5).frequencies[:3]
    array([1., 1., 1.])
    """

    best: Result  # the answer that `minimize` gives, or a better one that was met
    supports: list[Vector]  # the best first
    values: Vector  # φ at the best point on each
    x: Vector  # those points, one per row
    within: float
    complete: bool  # whether it is proved that there are no others
    message: str
    nodes: int  # of the tree
    elapsed: float  # seconds

    def __len__(self) -> int:
        return len(self.supports)

    @property
    def frequencies(self) -> Vector:
        """In which share of the supports each variable is."""
        return np.asarray((self.x != 0).mean(axis=0))

    def to_frame(self) -> pd.DataFrame:
        """One row per support."""
        import pandas as pd

        excess = (self.values - self.values[0]) / (abs(self.values[0]) or 1.0)
        return pd.DataFrame(
            {
                "objective": self.values,
                "excess": excess,
                "nonzeros": [s.size for s in self.supports],
                "support": self.supports,
            }
        )

    def __repr__(self) -> str:
        return f"{len(self)} supports within {100 * self.within:g} % of {self.values[0]:.10g}: {self.message}"

    def _repr_html_(self) -> str:
        """What a notebook shows: in which share of the supports the variables are, and the best supports."""
        often = np.argsort(-self.frequencies, kind="stable")[:12]
        shares = {f"x[{j}]": 100.0 * float(self.frequencies[j]) for j in often if self.frequencies[j] > 0}
        rows = [
            (f"{value:.8g}", ", ".join(map(str, support)))
            for value, support in zip(self.values[:10], self.supports[:10], strict=True)
        ]
        table = display.grid(("objective", "support"), rows)
        chart = display.bars(shares, "in which share of the supports each variable is, per cent")
        return f'<div class="ksparse-near">{display.facts({"found": repr(self)})}{chart}{table}</div>'


def near_optimal(
    loss: Loss,
    k: int,
    C: ConvexSet | None = None,
    *,
    within: float = 0.01,
    at_most: int = 1000,
    forced_in: Any = (),
    forced_out: Any = (),
    min_nonzero: Any = 0.0,
    groups: Any = None,
    group_limits: Any = None,
    requires: Any = None,
    random_state: int = 0,
    settings: SearchSettings | None = None,
    max_time: float | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    progress: bool = False,
) -> NearOptimal:
    """Every support of at most k variables whose best value over C is within a share of the best: the Rashomon set.

    A support is the nonzeros of the best point on some k variables: variables that come out as 0 are not in it, forced
    ones neither; above a floor (`min_nonzero`) all of them are. With rules about supports (`groups`, `group_limits`,
    `requires`) it is those of the best point on some support that obeys. Where φ and C allow no lower bound, the list
    holds what the search has met, and is not called complete.

    Parameters
    ----------
    loss : Loss
        φ.
    k : int
        Nonzeros allowed.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    within : float, default=0.01
        The share of the best value, in size.
    at_most : int, default=1000
        Supports that are listed; where there are more, the list is not complete, and says so.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support.
    min_nonzero : float or array-like, default=0.0
        Least size of a nonzero, one number or one per variable.
    groups : array-like or None, default=None
        A label for each variable: those of one label enter together or not at all, and k counts such groups.
    group_limits : tuple or None, default=None
        (labels, {label: (least, most)}): how many of a label must and may be in the support.
    requires : dict or None, default=None
        {child: parents} in indices: a variable is in the support only if its parents are.
    random_state : int, default=0
        Seed of the search.
    settings : SearchSettings or None, default=None
        The numbers that steer the search, where the defaults will not do.
    max_time : float or None, default=None
        Seconds; what was found by then is returned.
    callback : callable or None, default=None
        Called as scipy calls one: with `intermediate_result` if that is its parameter's name, else with x.
        StopIteration ends the run.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show bars while it runs, as `show_progress` does.

    Returns
    -------
    NearOptimal
        The supports, the best first, and whether they are all.

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
    >>> found = ks.near_optimal(ks.LeastSquares(A, b), 3, within=0.5)
    >>> found.complete, found.supports[0].tolist()
    (True, [0, 1, 2])
    """
    within, at_most = check_number(within, "within", at_least=0.0), check_integer(at_most, "at_most", 1)
    if within >= 1.0:
        raise ValueError(f"within must be a share below 1, such as 0.01, got {within:g}")
    request = check_request(
        loss, k, C, None, Stopping(max_time=max_time), callback, verbose, "k", groups, group_limits, requires
    )
    if request.loss.per_feature > 1:
        raise MissingPieceError(
            f"near_optimal counts variables, and k of {type(loss).__name__} counts features: use ks.k_path"
        )
    quiet = np.errstate(over="ignore", invalid="ignore")
    with show_progress(progress), deadline_scope(request.deadline), fitting_threads(request.loss), counting(), quiet:
        problem = support_problem(request, forced_in, forced_out, min_nonzero, settings)
        report = Report(verbose, callback)
        search = exploration(
            request, problem, Plan(effort=1, seed=random_state), lambda incumbent: report.tell(incumbent, problem.n)
        )
        with report:
            if request.interrupted:
                raise KeyboardInterrupt
            report.banner(request, problem)
            status = search.run()
            with bar("supports nearly as good") as one:

                def tell(tree: Progress) -> None:
                    one.update(tree.nodes, f"{tree.nodes} nodes, {tree.open} open")
                    report.show(tree, search.incumbent, request)

                found = near_supports(problem, search.incumbent, within, at_most, tell, status)
        points = np.array([one.full(problem.n) for one in found.candidates])
        values = np.array([value_of(problem.loss, x) for x in points])
        order = np.argsort(values, kind="stable")
        message = "complete" if found.complete else f"the list may be incomplete: {found.note}"
        return NearOptimal(
            judge_search(request, problem, search.incumbent, status), [np.flatnonzero(points[i]) for i in order], values[order],
            points[order], within, found.complete, message, found.nodes, request.elapsed,
        )  # fmt: skip
