"""The errors a user may want to catch by name."""

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
    """No point was found, and no proof that there is none: the arithmetic does not tell."""


class NotFiniteError(ValueError):
    """A function of the user's gave NaN or ∞ where a number was needed."""


class UnboundedError(ArithmeticError):
    """φ falls without end over C, found where a small problem was to be solved exactly."""


class MissingPieceError(TypeError):
    """A method needs something of a loss, set or penalty that this one does not have; the message says what to use instead.

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> try:
    ...     ks.minimize(ks.Poisson(np.eye(3), [1, 2, 3]), 1, method="apdca", step="fixed")
    ... except ks.MissingPieceError as error:
    ...     print(error)
    FixedStep needs a Lipschitz constant of the gradient; Poisson has none: use Backtracking()
    """
