"""Many answers in a light form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ksparse.result import Result, Status
from ksparse.util.arrays import Vector
from ksparse.util.checks import check_integer

if TYPE_CHECKING:
    import pandas as pd


def status_of(number: int) -> Status:
    """The status with that number."""
    return list(Status)[int(number)]


@dataclass(frozen=True)
class Batch:
    """One answer per right-hand side: what `minimize_many` returns.

    `batch[i]` is that of column i as a `Result`, judged like any other when it is asked for; its `elapsed` is that of the whole batch.

    Attributes
    ----------
    x : scipy.sparse.csc_array
        The answers, one column per right-hand side.
    fun : ndarray
        φ at each, from the raw data.
    success : ndarray of bool
        In C, at most k nonzeros, stationary on its support, and ended well.
    status : ndarray of int
        A number of `Status` for each.
    residual : ndarray
        Relative stationarity residual on the support.
    k : int
        Nonzeros at most.
    elapsed : float
        Seconds for all columns together.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 20))
    >>> batch = ks.minimize_many(A, A[:, :4] + A[:, 10:14], 2)
    >>> len(batch), batch.supports[3].tolist(), batch[3].support.tolist()
    (4, [3, 13], [3, 13])
    """

    x: Any  # scipy.sparse, one column per right-hand side
    fun: Vector  # φ at each, from the raw data
    success: Vector  # in C, at most k nonzeros, stationary on its support, and ended well
    status: Vector  # a number of `Status` for each
    residual: Vector  # relative stationarity residual on the support
    k: int
    elapsed: float  # seconds for all
    _judge: Callable[[int], Result] = field(repr=False)

    def __len__(self) -> int:
        return len(self.fun)

    def __getitem__(self, i: int) -> Result:
        """The answer for column i."""
        place = check_integer(i, "i", -len(self), len(self) - 1)
        return self._judge(place % len(self))

    def __iter__(self) -> Iterator[Result]:
        return (self[i] for i in range(len(self)))

    @property
    def supports(self) -> list[Vector]:
        """The nonzeros of each answer."""
        return [np.sort(part) for part in np.split(self.x.indices, self.x.indptr[1:-1])]

    def counts(self) -> Vector:
        """In how many answers each variable is."""
        return np.bincount(self.x.indices, minlength=self.x.shape[0])

    def messages(self) -> dict[str, int]:
        """How many ended in which way."""
        numbers, counts = np.unique(self.status, return_counts=True)
        return {status_of(number).message: int(count) for number, count in zip(numbers, counts, strict=True)}

    def to_frame(self) -> pd.DataFrame:
        """One row per right-hand side."""
        import pandas as pd

        columns = {
            "objective": self.fun,
            "nonzeros": np.diff(self.x.indptr),
            "status": [status_of(s).name for s in self.status],
        }
        return pd.DataFrame(columns | {"success": self.success, "residual": self.residual, "support": self.supports})

    def __repr__(self) -> str:
        ways = "; ".join(f"{count} {message}" for message, count in self.messages().items())
        return f"{len(self)} answers with at most {self.k} nonzeros, {int(self.success.sum())} successes, {self.elapsed:.3g} s: {ways}"
