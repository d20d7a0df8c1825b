"""What a neighbourhood is: it stands at a support, ranks the moves away from it, makes one, and takes it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np

from ksparse.search.candidate import Candidate
from ksparse.util.arrays import Vector

HEURISTIC_TRIALS = 12  # moves evaluated per step if their ranks are heuristic


class Trust(Enum):
    """How far a ranking can be trusted."""

    EXACT = "the gains themselves"
    UPPER_BOUND = "no move gains more than its rank says"
    GUESS = "a guess"


class Move(NamedTuple):
    """Variables that leave a support and variables that enter it."""

    leaving: tuple[int, ...]
    entering: tuple[int, ...]
    needed: float = 0.0  # what it must gain to be taken: several swaps at once are to beat the best one alone

    @property
    def changes(self) -> int:
        """How many variables it moves."""
        return len(self.leaving) + len(self.entering)


class Swap(NamedTuple):
    """A move, and what it gains."""

    move: Move
    gain: float


Undo = Callable[[], None]


class Neighbourhood(Protocol):
    """The supports one add, drop or swap away from where it stands."""

    trust: Trust
    monotone: bool  # whether a variable that its rank lets enter never makes φ worse, and stays
    walks: bool  # whether a walk leads out of its local optima: it knows what a swap gains also where none does
    compared: int  # how many of the highest-ranked moves are made, for the best of them: 1 where ranks are gains

    @property
    def changes(self) -> int:
        """Variables that entered or left so far: the work done."""

    @property
    def support(self) -> Vector:
        """Where it stands, in any order."""

    @property
    def size(self) -> int:
        """How many variables it has there."""

    @property
    def value(self) -> float:
        """φ there."""

    @property
    def key(self) -> int:
        """A name of the support, whatever its order."""

    @property
    def room(self) -> int:
        """How many variables a support may have on the way."""

    def stand_at(self, candidate: Candidate) -> None:
        """Stand at a support; `DependentError` where its variables are too nearly dependent to stand on."""

    def jump(self, support: Vector) -> bool:
        """Stand at a support of which nothing is known; False where C has no point there, or it cannot be stood on."""

    def adds(self, least: float, most: int, shut: Vector | None = None) -> Iterator[Move]:
        """The most promising variables to enter, those in `shut` aside, their gain above `least` by its rank; `most` are about to enter."""

    def drops(self) -> Iterator[Move]:
        """The variables that cost least to leave."""

    def moves(self, least: float, full: bool) -> Iterator[Move]:
        """Swaps, and what else fits the set, by falling rank above `least`; `full`: the support has all the variables it may have."""

    def pairs(self, least: float) -> Iterator[Move]:
        """Swaps of two for two, where a set is such that those of one for one lead nowhere; by falling rank above `least`."""

    def get_ready(self, changes: int) -> None:
        """For a walk of so many changes: what it is going to ask for, where that costs less at once."""

    def swap(self, shut: Vector, kept: Vector, aspired: float = np.inf) -> Swap | None:
        """The best swap, whether it gains or not, by those that promise most alone; None where none promises anything.

        Those of the mask `shut` stay out and those of `kept` in, unless a swap gains more than `aspired` by it.
        """

    def apply(self, move: Move) -> Undo | None:
        """Make a move; what takes it back, whatever entered since, or None, and nothing changed, where C has no point there."""

    def kick(self, leaving: Vector, rng: np.random.Generator) -> bool:
        """Let several variables leave at once, as far as they can be spared; False where C has no point then."""

    def mark(self) -> Any:
        """Where it stands, to come back to."""

    def back_to(self, mark: Any) -> None:
        """Stand where the mark was made."""

    def worth(self) -> tuple[float, float]:
        """The least that a variable of the support costs to leave, and the most that another would gain."""


class DependentError(Exception):
    """The variables of a support are dependent, or nearly so: its factorisation cannot be trusted."""
