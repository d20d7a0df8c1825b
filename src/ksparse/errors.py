"""The errors a user may want to catch by name."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """C is empty, or holds no point with at most k nonzeros; the message says why."""


class MissingPieceError(TypeError):
    """A method needs something of a loss, set or penalty that this one does not have."""
