"""The errors a user may want to catch by name."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """C is empty, or holds no point with at most k nonzeros; the message says why."""


class UndecidedError(InfeasibleError):
    """No point was found, and no proof that there is none: the arithmetic does not tell."""


class NotFiniteError(ValueError):
    """A function of the user's gave NaN or ∞ where a number was needed."""


class UnboundedError(ArithmeticError):
    """φ falls without end over C, found where a small problem was to be solved exactly."""


class MissingPieceError(TypeError):
    """A method needs something of a loss, set or penalty that this one does not have."""
