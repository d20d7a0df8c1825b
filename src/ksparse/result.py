"""What comes back: a status that carries its sentence, the trace of the run, and values recomputed from the raw data."""

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

    Each member has a `message`, its sentence; `good`, whether the run reached what it was after; and `early`, whether
    it was ended from outside.

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
    SWAP_OPTIMAL = 2, "swap-optimal: no exchange of one variable for another improves it"
    ITERATION_LIMIT = 3, "iteration limit reached; the best point so far is returned"
    TIME_LIMIT = 4, "time limit reached; the best point so far is returned"
    CALLBACK_STOP = 5, "stopped by the callback; the best point so far is returned"
    INTERRUPTED = 6, "interrupted; the best point so far is returned"
    UNBOUNDED = 7, "the objective is unbounded below on the set"
    NUMERICAL_TROUBLE = 8, "numerical trouble: the arithmetic gave no finite value; the best point so far is returned"
    SETTLED = 9, "stopped with a stationarity residual above 1e-6; see residual"

    @property
    def good(self) -> bool:
        """Whether the run ended by reaching what it was after."""
        return self in (Status.OPTIMAL, Status.STATIONARY, Status.SWAP_OPTIMAL, Status.SETTLED)

    @property
    def without_proof(self) -> Status:
        """The status that is left where a proof does not apply: STATIONARY for a proved one, else the status itself."""
        return Status.STATIONARY if self in (Status.OPTIMAL, Status.SWAP_OPTIMAL) else self

    @property
    def early(self) -> bool:
        """Whether the run was ended from outside, or can find no end: what was to follow it need not begin."""
        return self in (Status.TIME_LIMIT, Status.CALLBACK_STOP, Status.INTERRUPTED, Status.UNBOUNDED)


@dataclass(frozen=True)
class Trace:
    """The way of a run: one entry per iteration, the start first.

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

    F: np.ndarray[Any, Any]  # the objective that the method descends
    step: np.ndarray[Any, Any]  # 1/l
    residual: np.ndarray[Any, Any]  # relative stationarity residual at the step's base point
    elapsed: np.ndarray[Any, Any]  # seconds since the start
    products: np.ndarray[Any, Any]  # products with the data so far, forward and adjoint

    def __len__(self) -> int:
        return len(self.F)


@dataclass(frozen=True)
class Result:
    """The answer, in scipy's field names. `fun`, `maxcv`, `residual` and the support are recomputed from the raw data.

    In a notebook it shows itself with a chart of x, and the gap as a bar.

    Attributes
    ----------
    x : array
        The answer, of the kind of array that the data are.
    fun : float
        φ(x), plus the penalty in `minimize_penalized`.
    success : bool
        By the recomputed values: finite, in C, at most k nonzeros, and ended well.
    status : Status
        Why the run ended.
    message : str
        The same in words.
    nit : int
        Iterations.
    nfev : int
        Evaluations of φ in the whole call (in `k_path`: so far); values of a quadratic model of φ are not counted.
    njev : int
        Evaluations of its gradient, likewise.
    maxcv : float
        How far x is outside C.
    support : ndarray
        Indices of the nonzeros.
    k : int or None
        The cardinality asked for.
    elapsed : float
        Seconds.
    method : str
        Who found it.
    rho : float or None
        The penalty weight that gave x.
    residual : float
        Relative stationarity residual of x (on its support, for a k-sparse answer).
    trace : Trace
        The way of the run.
    swaps : int
        Exchanges of variables made by "auto".
    proved : bool
        Whether it is proved that no add, drop or swap improves x.
    outcomes : list of dict
        One row per penalty weight. For method="auto" one for each stage of the search that ended with a solution (a
        start, its perturbations, the check of all swaps, ...): one start gives several rows.
    lower_bound : float
        What no k-sparse point of C falls below, where that is proved; else −∞.
    gap : float
        (fun − lower_bound) beside the size of fun; beside φ(0) where the difference is what rounding leaves of a
        perfect fit.
    nodes : int
        Of the tree that proved it.
    passes : int
        Over data that are read by blocks of rows.
    names : tuple of str or None
        Of the variables, for showing x by name; see `named`.

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

    x: Array  # the answer
    fun: float  # φ(x), plus the penalty in `minimize_penalized`
    success: bool  # by the recomputed values: finite, in C, at most k nonzeros, and ended well
    status: Status
    message: str
    nit: int  # iterations
    nfev: int  # evaluations of φ
    njev: int  # evaluations of ∇φ
    maxcv: float  # how far x is outside C
    support: np.ndarray[Any, Any]  # indices of the nonzeros
    k: int | None  # the cardinality asked for
    elapsed: float  # seconds
    method: str
    rho: float | None  # the penalty weight that gave x
    residual: float  # relative stationarity residual of x (on its support, for a k-sparse answer)
    trace: Trace
    swaps: int = 0  # exchanges of variables made by "auto"
    proved: bool = False  # whether it is proved that no add, drop or swap improves x
    outcomes: list[dict[str, Any]] = field(default_factory=list)  # one row per penalty weight, or stage of a search
    lower_bound: float = -math.inf  # what no k-sparse point of C falls below, where that is proved
    gap: float = math.inf  # (fun − lower_bound)/|fun|; of a perfect fit, relative to φ(0)
    nodes: int = 0  # of the tree that proved it
    passes: int = 0  # over data that are read by blocks of rows
    names: tuple[str, ...] | None = None  # of the variables

    def named(self, names: Sequence[str]) -> Result:
        """The same answer with the variables' names, by which it shows x.

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
        """The nonzeros by name, the largest in size first.

        Parameters
        ----------
        most : int or None, default=None
            How many at most; None for all.

        Returns
        -------
        dict from str to float
            Names, or x[i] where there are none, and values.
        """
        x = to_numpy(self.x)
        order = self.support[np.argsort(-np.abs(x[self.support]), kind="stable")][:most]
        return {f"x[{j}]" if self.names is None else self.names[j]: float(x[j]) for j in order}

    def _facts(self) -> dict[str, str]:
        asked = "" if self.k is None else f" (k = {self.k})"
        bounded = self.lower_bound > -math.inf
        return {
            "fun": f"{self.fun:.10g}",
            "nonzeros": f"{self.support.size}{asked}",
            "success": f"{self.success}",
            "status": f"{self.status.name}: {self.message}",
            "method": self.method if self.rho is None else f"{self.method}, rho = {self.rho:g}",
            "maxcv": f"{self.maxcv:.3g}",
            "residual": f"{self.residual:.3g}",
            **(
                {"bound": f"{self.lower_bound:.10g} (gap {100 * self.gap:.3g} %, {self.nodes} nodes)"}
                if bounded
                else {}
            ),
            "nit": f"{self.nit} ({self.nfev} values, {self.njev} gradients, {self.elapsed:.3g} s)",
            **({"passes": f"{self.passes} over the data"} if self.passes else {}),
        }

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} = {value:.5g}" for name, value in self.nonzeros(SHOWN).items())
        rows = self._facts() | {"x": (shown or "0") + (", ..." if self.support.size > SHOWN else "")}
        return "\n".join(f"{name:>9}: {text}" for name, text in rows.items())

    def _repr_html_(self) -> str:
        """What a notebook shows: the facts, the largest entries of x as bars, and the gap as one."""
        values = self.nonzeros(CHARTED)
        more = self.support.size - len(values)
        chart = display.bars(values, "the largest entries of x")
        below = f"<div>and {more} smaller ones</div>" if more else ""
        gap = display.share(self.gap, f"gap {100 * self.gap:.3g} %") if self.lower_bound > -math.inf else ""
        return f'<div class="ksparse-result">{display.facts(self._facts())}{chart}{below}{gap}</div>'
