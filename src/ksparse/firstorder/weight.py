"""The weight at which a penalty is strong enough to keep x at 0."""

from __future__ import annotations

import numpy as np

from ksparse.firstorder.problem import Problem
from ksparse.losses import Loss
from ksparse.penalties.base import Penalty


def weight_max(loss: Loss, penalty: Penalty) -> float:
    """The smallest weight (λ or ρ) of this kind of penalty at which 0 is stationary; the penalty's own weight plays no role.

    Above it every method started at 0 stays there.

    Parameters
    ----------
    loss : Loss
        φ.
    penalty : Penalty
        Of the kind in question.

    Returns
    -------
    float
        The weight; inf where none suffices (`TopK2` is flat at 0).

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> ks.weight_max(ks.LeastSquares(np.eye(3), [3.0, -4.0, 1.0]), ks.L1(1.0))
    4.0
    """
    zero = Problem(loss, penalty, n=loss.n).zeros()
    return float(np.float64(penalty.weight_max(loss.gradient(zero))))
