"""Exceptions that ksparse raises."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """C is empty, or holds no point with at most k nonzeros; the message says why.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> try:
    ...     ks.minimize(ks.LeastSquares(np.eye(3), np.ones(3)), 1, ks.Box([1, 1, 0], 2))
    ... except ks.InfeasibleError as error:
    ...     print(error)
    C = Box(vector, 2) holds no point with at most k = 1 nonzeros: the bounds of 2 variables exclude 0
    """


class UndecidedError(InfeasibleError):
    """Neither a feasible point nor a proof of infeasibility was found."""


class NotFiniteError(ValueError):
    """A user-supplied function returned NaN or ∞ where a number is needed."""


class UnboundedError(ArithmeticError):
    """The objective is unbounded below over C."""


class MissingPieceError(TypeError):
    """A method needs a property that the loss, set or penalty does not have; the message says what to use instead.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> try:
    ...     ks.minimize(ks.Poisson(np.eye(3), [1, 2, 3]), 1, method="apdca", step="fixed")
    ... except ks.MissingPieceError as error:
    ...     print(error)
    FixedStep needs a Lipschitz constant of the gradient; Poisson has none: use Backtracking()
    """
