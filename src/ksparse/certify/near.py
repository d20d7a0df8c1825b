"""All supports that are nearly as good as the best: the tree with its cut above the best value instead of below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ksparse.certify.prove import LeafSolver, Progress, family_of, progress_of, why_hopeless
from ksparse.certify.tree import Tree
from ksparse.result import Status
from ksparse.search.candidate import Candidate
from ksparse.search.incumbent import Incumbent
from ksparse.search.problem import SupportProblem
from ksparse.util.resources import OutOfTimeError, StoppedError, heard_by

ROUNDING = 1e-9  # of the value: a support at the edge is in
ENDED = {  # why a list may be incomplete: a status's own sentence speaks of a point
    Status.CALLBACK_STOP: "stopped by the callback",
    Status.INTERRUPTED: "interrupted",
    Status.TIME_LIMIT: "time limit reached",
    Status.UNBOUNDED: "φ is unbounded below over C",
}


@dataclass(frozen=True)
class Near:
    """The supports that were found, the best first, and whether they are all."""

    candidates: list[Candidate]
    complete: bool
    note: str  # why not
    nodes: int


def near_supports(
    problem: SupportProblem,
    incumbent: Incumbent,
    within: float,
    at_most: int,
    tell: Callable[[Progress], None],
    searched: Status,
) -> Near:
    """Find every support whose best value is within a share of the best of all.

    Where the search was stopped (`searched`), or where there is no lower bound, these are the supports that the search has seen.
    """
    assert incumbent.best is not None
    found = _Found(problem, incumbent, within)
    if searched.early:
        return Near(found.all()[:at_most], False, ENDED[searched], 0)
    tree, note = None, ""
    try:
        family = family_of(problem, incumbent.best, found.edge + ROUNDING * abs(found.edge))
        if isinstance(family, str):
            return Near(found.all()[:at_most], False, _unavailable(family.removeprefix("; no lower bound: ")), 0)
        scale = family.scale
        search = LeafSolver(problem, incumbent, family)
        tree = planted = Tree(
            family, search.solve, incumbent.best.value / scale, -within - ROUNDING, problem.pieces.deadline, every=True
        )
        with heard_by(lambda: tell(progress_of([planted], scale))):
            tree.plant()
        for _ in tree.grow():
            tell(progress_of([tree], scale))
            if len(found.all()) > at_most:
                note = f"there are more than at_most = {at_most}"
                break
    except (StopIteration, StoppedError):
        note = ENDED[Status.CALLBACK_STOP]
    except KeyboardInterrupt:
        note = ENDED[Status.INTERRUPTED]
    except OutOfTimeError:
        note = ENDED[Status.TIME_LIMIT]
    except np.linalg.LinAlgError:
        note = _unavailable("the values are too small or too large for it")
    if not note and (tree is None or (tree.open and not tree.done) or not tree.nodes):
        hopeless = tree is not None and tree.hopeless
        note = _unavailable(why_hopeless(problem)) if hopeless else ENDED[Status.TIME_LIMIT]
    if not note and problem.memory.doubtful:
        note = "on some supports arithmetic could not find the best point"
    return Near(found.all()[:at_most], not note, note, 0 if tree is None else tree.nodes)


def _unavailable(why: str) -> str:
    return f"no lower bound is available ({why})"


class _Found:
    """What has been seen so far that is good enough."""

    def __init__(self, problem: SupportProblem, incumbent: Incumbent, within: float) -> None:
        self.problem, self.incumbent, self.within = problem, incumbent, within

    @property
    def edge(self) -> float:
        """The value up to which a support is good enough."""
        assert self.incumbent.best is not None
        best = self.incumbent.best.value
        return best + self.within * abs(best)

    def all(self) -> list[Candidate]:
        """Return what is best on supports that are allowed, within the edge, the best first, each set of nonzeros once."""
        edge = self.edge + ROUNDING * abs(self.edge)
        good = [
            one
            for key, one in self.problem.memory.seen.items()
            if one is not None and one.value <= edge and self._allowed(key, one)
        ]
        assert self.incumbent.best is not None
        if not self.problem.pieces.rules.any or not good:
            good.append(self.incumbent.best)
        once = {
            one.support[one.x != 0].tobytes(): one for one in sorted(good, key=lambda one: -one.value)
        }  # forced ones may be 0
        return sorted(once.values(), key=lambda one: (one.value, tuple(one.support)))

    def _allowed(self, key: bytes, one: Candidate) -> bool:
        """Return whether the support that was asked about holds all forced variables and is allowed.

        Without rules only the forced variables and the nonzeros count; with rules the support must obey, whatever comes out as 0.
        """
        problem, pieces, asked = self.problem, self.problem.pieces, np.frombuffer(key, dtype=np.intp)
        if not np.isin(pieces.forced, asked).all():
            return False
        return (
            pieces.rules.is_satisfied(asked) and problem.allows(asked)
            if pieces.rules.any
            else problem.allows(one.support)
        )
