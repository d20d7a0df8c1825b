"""The weight at which a penalty is strong enough to keep x at 0."""

from __future__ import annotations

import numpy as np

from ksparse.firstorder.problem import Problem
from ksparse.losses import Loss
from ksparse.penalties.base import Penalty


def weight_max(loss: Loss, penalty: Penalty) -> float:
    """The smallest weight (λ or ρ) of this kind of penalty at which 0 is stationary; the penalty's own weight plays no role.

    Above it every method started at 0 stays there; inf where no weight suffices (TopK2 is flat at 0).
    """
    zero = Problem(loss, penalty, n=loss.n).zeros()
    return float(np.float64(penalty.weight_max(loss.gradient(zero))))
