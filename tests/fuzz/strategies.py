"""Choices made by hypothesis, for property tests: a failing case is shrunk."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from .case import LOSSES, SETS, choose


@dataclass(frozen=True)
class Drawn:
    """A chooser from hypothesis' `draw`."""

    draw: object

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def integer(self, low, high):
        return self.draw(st.integers(low, high))


@st.composite
def cases(draw, losses=LOSSES, sets=SETS, **limits):
    """Draw a case with these losses and sets."""
    return choose(Drawn(draw), losses, sets, **limits)
