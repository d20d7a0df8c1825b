"""Results: a status with its message, the iteration history, and values recomputed from the raw data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np

from ksparse.util import display
from ksparse.util.arrays import Array, to_numpy

SHOWN, CHARTED = 6, 12  # entries of x in a line of text, and in a chart


class Status(IntEnum):
    """Why a run ended. Append only: the numbers are public.

    Each member has a `message`; `good`, whether the run ended normally; and `early`, whether it was stopped by a time
    limit, a callback or an interrupt, or found unbounded.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.Status.OPTIMAL.message, ks.Status(4).name, ks.Status.TIME_LIMIT.good
    ('proved optimal', 'TIME_LIMIT', False)
    """

    message: str

    def __new__(cls, value: int, message: str) -> Status:
        member = int.__new__(cls, value)
        member._value_ = value
        member.message = message
        return member

    OPTIMAL = 0, "proved optimal"
    STATIONARY = 1, "stationary point (relative residual at most 1e-6); not proved optimal"
    SWAP_OPTIMAL = (
        2,
        "no single addition, removal or swap of a variable improves it (proved); global optimality not proved",
    )
    ITERATION_LIMIT = 3, "iteration limit reached (best solution found so far)"
    TIME_LIMIT = 4, "time limit reached (best solution found so far)"
    CALLBACK_STOP = 5, "stopped by the callback (best solution found so far)"
    INTERRUPTED = 6, "interrupted (best solution found so far)"
    UNBOUNDED = 7, "the objective is unbounded below over C"
    NUMERICAL_TROUBLE = 8, "numerical difficulties: the solution could not be computed reliably"
    SETTLED = 9, "stopped with a stationarity residual above 1e-6; see residual"

    @property
    def good(self) -> bool:
        """Whether the run ended normally: with a solution, not at a limit."""
        return self in (Status.OPTIMAL, Status.STATIONARY, Status.SWAP_OPTIMAL, Status.SETTLED)

    @property
    def without_proof(self) -> Status:
        """The status if a proof does not apply: STATIONARY in place of a proved one, else the status itself."""
        return Status.STATIONARY if self in (Status.OPTIMAL, Status.SWAP_OPTIMAL) else self

    @property
    def early(self) -> bool:
        """Whether the run was stopped early (time limit, callback, interrupt) or is unbounded."""
        return self in (Status.TIME_LIMIT, Status.CALLBACK_STOP, Status.INTERRUPTED, Status.UNBOUNDED)


@dataclass(frozen=True)
class Trace:
    """Iteration history: one entry per iteration, starting with the initial point.

    Attributes
    ----------
    F : ndarray
        The objective that the method descends.
    step : ndarray
        1/l, the step size.
    residual : ndarray
        Relative stationarity residual at the step's base point.
    elapsed : ndarray
        Seconds since the start.
    products : ndarray
        Products with the data so far, forward and adjoint.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> trace = ks.minimize_penalized(ks.LeastSquares(np.eye(3), [3.0, 0.1, 0.1]), ks.L1(1.0)).trace
    >>> len(trace) == len(trace.F), bool(trace.F[-1] < trace.F[0])
    (True, True)
    """

    F: np.ndarray[Any, Any]
    step: np.ndarray[Any, Any]
    residual: np.ndarray[Any, Any]
    elapsed: np.ndarray[Any, Any]
    products: np.ndarray[Any, Any]

    def __len__(self) -> int:
        return len(self.F)


@dataclass(frozen=True)
class Result:
    """Result of an optimisation, with the field names of `scipy.optimize.OptimizeResult`.

    `fun`, `maxcv`, `residual` and the support are recomputed from x and the raw data. In a notebook a result shows a
    chart of x and its gap.

    Attributes
    ----------
    x : array
        The solution, of the same array type as the data.
    fun : float
        φ(x), plus the penalty in `minimize_penalized`.
    success : bool
        True if x is finite and feasible (in C, at most k nonzeros) and the run ended normally, checked from the raw
        data.
    status : Status
        Why the run ended.
    message : str
        The status in words.
    nit : int
        Iterations.
    nfev : int
        Evaluations of φ in the whole call (in `k_path`: so far); values of a quadratic model of φ are not counted.
    njev : int
        Evaluations of its gradient, likewise.
    maxcv : float
        Maximum constraint violation of x; 0 if x is in C.
    support : ndarray
        Indices of the nonzeros.
    k : int or None
        The requested cardinality.
    elapsed : float
        Time in seconds.
    method : str
        Name of the method.
    rho : float or None
        The penalty weight that gave x.
    residual : float
        Relative stationarity residual of x (on its support, for a k-sparse solution).
    trace : Trace
        Iteration history.
    swaps : int
        Swaps of variables made by "auto".
    proved : bool
        Whether it is proved that no single addition, removal or swap of a variable improves x.
    outcomes : list of dict
        One row per penalty weight. For method="auto" one for each stage of the search that ended with a solution (a
        start, its perturbations, the check of all swaps, ...): one start gives several rows.
    lower_bound : float
        Proved lower bound on the optimal value; −inf if none is available.
    gap : float
        Optimality gap, (fun − lower_bound)/abs(fun); relative to φ(0) if fun is the rounding of a perfect fit.
    nodes : int
        Branch-and-bound nodes.
    passes : int
        Passes over data that are read by blocks of rows.
    names : tuple of str or None
        Names of the variables, see `named`.

    Examples
    --------
    >>> import numpy as np
    >>> import ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> b = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    >>> result = ks.minimize(ks.LeastSquares(A, b), 3)
    >>> result.success, result.status.name, result.support.tolist()
    (True, 'OPTIMAL', [0, 1, 2])
    """

    x: Array
    fun: float
    success: bool
    status: Status
    message: str
    nit: int
    nfev: int
    njev: int
    maxcv: float
    support: np.ndarray[Any, Any]
    k: int | None
    elapsed: float
    method: str
    rho: float | None
    residual: float
    trace: Trace
    swaps: int = 0
    proved: bool = False
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    lower_bound: float = -math.inf
    gap: float = math.inf
    nodes: int = 0
    passes: int = 0
    names: tuple[str, ...] | None = None

    def named(self, names: Sequence[str]) -> Result:
        """Return a copy with names of the variables, by which it shows x.

        Parameters
        ----------
        names : sequence of str
            One per variable.

        Returns
        -------
        Result
            A copy.

        Raises
        ------
        ValueError
            If there are not as many names as variables.
        """
        names = tuple(str(name) for name in names)
        if len(names) != len(self.x):
            raise ValueError(f"names must hold one name per variable, {len(self.x)}, got {len(names)}")
        return replace(self, names=names)

    def nonzeros(self, most: int | None = None) -> dict[str, float]:
        """Return the nonzeros by name, the largest in absolute value first.

        Parameters
        ----------
        most : int or None, default=None
            Maximum number of entries; None for all.

        Returns
        -------
        dict from str to float
            Names (x[i] if there are none) and values.
        """
        x = to_numpy(self.x)
        order = self.support[np.argsort(-np.abs(x[self.support]), kind="stable")][:most]
        return {f"x[{j}]" if self.names is None else self.names[j]: float(x[j]) for j in order}

    def _facts(self) -> dict[str, str]:
        requested = "" if self.k is None else f" (k = {self.k})"
        rows = {
            "fun": f"{self.fun:.10g}",
            "nonzeros": f"{self.support.size}{requested}",
            "success": f"{self.success}",
            "status": f"{self.status.name}: {self.message}",
            "method": self.method if self.rho is None else f"{self.method}, rho = {self.rho:g}",
            "maxcv": f"{self.maxcv:.3g}",
            "residual": f"{self.residual:.3g}",
        }
        if self.lower_bound > -math.inf:
            nodes = f"{self.nodes} node{'' if self.nodes == 1 else 's'}"
            rows["lower_bound"] = f"{self.lower_bound:.10g} (gap {100 * self.gap:.3g} %, {nodes})"
        rows |= {name: str(getattr(self, name)) for name in ("nit", "nfev", "njev")} | {
            "elapsed": f"{self.elapsed:.3g} s"
        }
        return rows | ({"passes": f"{self.passes} over the data"} if self.passes else {})

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} = {value:.5g}" for name, value in self.nonzeros(SHOWN).items())
        rows = self._facts() | {"x": (shown or "0") + (", ..." if self.support.size > SHOWN else "")}
        return "\n".join(f"{name:>11}: {text}" for name, text in rows.items())

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the values, the largest entries of x as bars, and the gap."""
        values = self.nonzeros(CHARTED)
        more = self.support.size - len(values)
        chart = display.bars(values, "largest entries of x")
        below = f"<div>and {more} smaller ones</div>" if more else ""
        gap = display.share(self.gap, f"gap {100 * self.gap:.3g} %") if self.lower_bound > -math.inf else ""
        return f'<div class="ksparse-result">{display.facts(self._facts())}{chart}{below}{gap}</div>'
