"""All supports that are nearly as good as the best: they show which variables are needed and which replaceable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.certify.prove import TreeProgress, enumerate_near_optimal
from ksparse.errors import MissingPieceError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.result import Result
from ksparse.search.settings import SearchSettings
from ksparse.sets import ConvexSet
from ksparse.solve.judge import judge_search, value_of
from ksparse.solve.minimize import SearchReporter, make_plan, make_search
from ksparse.solve.request import check_request, solve_scope, support_problem
from ksparse.util import display
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer, check_number
from ksparse.util.progress import bar

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class NearOptimal:
    """Supports whose best value is within a fraction of the best of all: what `near_optimal` returns.

    Attributes
    ----------
    best : Result
        The result that `minimize` gives, or a better one that was found.
    supports : list of ndarray
        The nonzeros, the best first.
    values : ndarray
        φ at the best point on each support.
    x : ndarray
        The best points, one per row.
    within : float
        The requested fraction.
    complete : bool
        Whether it is proved that there are no other such supports.
    message : str
        Whether the list is complete, and if not, why.
    nodes : int
        Branch-and-bound nodes.
    elapsed : float
        Time in seconds.

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

    best: Result
    supports: list[Vector]
    values: Vector
    x: Vector
    within: float
    complete: bool
    message: str
    nodes: int
    elapsed: float

    def __len__(self) -> int:
        return len(self.supports)

    @property
    def frequencies(self) -> Vector:
        """The fraction of the supports that contain each variable."""
        return np.asarray((self.x != 0).mean(axis=0))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per support."""
        import pandas as pd

        excess = (self.values - self.values[0]) / (abs(self.values[0]) or 1.0)
        sizes = [support.size for support in self.supports]
        return pd.DataFrame({"objective": self.values, "excess": excess, "nonzeros": sizes, "support": self.supports})

    def __repr__(self) -> str:
        return f"{len(self)} supports within {100 * self.within:g} % of {self.values[0]:.10g}: {self.message}"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: how often each variable occurs, and the best supports."""
        often = np.argsort(-self.frequencies, kind="stable")[:12]
        shares = {f"x[{j}]": 100.0 * float(self.frequencies[j]) for j in often if self.frequencies[j] > 0}
        best = zip(self.values[:10], self.supports[:10], strict=True)
        rows = [(f"{value:.8g}", ", ".join(map(str, support))) for value, support in best]
        chart = display.bars(shares, "inclusion frequency (%)")
        table = display.grid(("objective", "support"), rows)
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
    """Find every support of at most k variables whose best value over C is nearly optimal: the Rashomon set.

    A support here is the set of nonzeros of the best point on some k variables. Variables that are 0 at that point are
    not in it, not even forced ones (a `min_nonzero` above 0 excludes 0). With rules about supports (`groups`,
    `group_limits`, `requires`), the point is the best one on a support that satisfies them. If φ and C allow no lower
    bound, the list has the supports that the search has found, and is not called complete.

    Parameters
    ----------
    loss : Loss
        φ.
    k : int
        Maximum number of nonzeros.
    C : ConvexSet or None, default=None
        The set; None for the whole space.
    within : float, default=0.01
        How far a value may exceed the best one, as a fraction of its absolute value.
    at_most : int, default=1000
        Maximum number of supports; if there are more, the list is not complete.
    forced_in, forced_out : array-like of int, default=()
        Variables that are always, or never, in the support.
    min_nonzero : float or array-like, default=0.0
        Minimum absolute value of a nonzero, one number or one per variable.
    groups : array-like or None, default=None
        A label for each variable: variables of one label enter the support together or not at all, and k counts groups.
    group_limits : tuple or None, default=None
        (labels, {label: (min, max)}): limits on the number of selected variables per label, None for no maximum; with
        `groups`, of groups.
    requires : dict or None, default=None
        {child: parents}, in indices: a variable is in the support only with its parents.
    random_state : int, default=0
        Seed of the search.
    settings : SearchSettings or None, default=None
        Advanced search settings.
    max_time : float or None, default=None
        Time limit in seconds; the supports found by then are returned.
    callback : callable or None, default=None
        Called as in `scipy.optimize.minimize`; raise StopIteration to stop.
    verbose : int, default=0
        Whether to print a table of the search.
    progress : bool, default=False
        Whether to show progress bars, as `show_progress` does.

    Returns
    -------
    NearOptimal
        The supports, the best first, and whether the list is complete.

    Raises
    ------
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
        raise ValueError(f"within must be a fraction below 1, such as 0.01, got {within:g}")
    rules = (groups, group_limits, requires)
    request = check_request(loss, k, C, None, Stopping(max_time=max_time), callback, verbose, rules=rules)
    if request.loss.per_feature > 1:
        name = type(loss).__name__
        raise MissingPieceError(f"near_optimal counts variables, but k of {name} counts features: use ks.k_path")
    with solve_scope(request.loss, request.deadline, progress):
        problem = support_problem(request, forced_in, forced_out, min_nonzero, settings)
        reporter = SearchReporter(request, problem)
        search = make_search(request, problem, make_plan(1, None, random_state), reporter.log_stage)
        with reporter:
            status = search.run()
            with bar("nearly optimal supports") as one:

                def update(tree: TreeProgress) -> None:
                    one.update(tree.nodes, f"{tree.nodes} nodes, {tree.open} open")
                    reporter.log_tree(tree, search.incumbent)

                found, note, nodes = enumerate_near_optimal(problem, search.incumbent, within, at_most, status, update)
        points = np.array([candidate.full(problem.n) for candidate in found])
        values = np.array([value_of(problem.loss, x) for x in points])
        order = np.argsort(values, kind="stable")
        values, points = values[order], points[order]
        supports, best = [np.flatnonzero(x) for x in points], judge_search(request, problem, search.incumbent, status)
        message = f"the list may be incomplete: {note}" if note else "complete"
        return NearOptimal(best, supports, values, points, within, not note, message, nodes, request.elapsed)
