"""How a path is made: some k as `minimize` does them, the others from their neighbours, with one memory of supports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ksparse.certify.prove import Wanted
from ksparse.errors import InfeasibleError, UnboundedError
from ksparse.result import Result, Status
from ksparse.search.again import local_search
from ksparse.search.candidate import Candidate, Found
from ksparse.search.enumeration import asked, try_all
from ksparse.search.explore import Plan, conclude, fallback_point, settle
from ksparse.search.incumbent import Incumbent
from ksparse.search.problem import SupportProblem
from ksparse.search.strategy import choose_strategy, without_updates
from ksparse.solve.by_search import certified, exploration
from ksparse.solve.judge import NOTHING, judge_search
from ksparse.solve.request import Request
from ksparse.util.progress import NULL_BAR, Bar, as_scipy_callback, bar
from ksparse.util.resources import OutOfTimeError, one_thread


class Walk:
    """The path while it is made: the best candidate for every k, all with one memory of supports."""

    def __init__(
        self, request: Request, problem: SupportProblem, sizes: list[int], plan: Plan, wanted: Wanted | None = None
    ) -> None:
        self.request, self.sizes, self.plan, self.wanted = request, sizes, plan, wanted
        self.problems, self.n = {k: problem.with_k(k) for k in sizes}, problem.n
        self.incumbents = {k: Incumbent() for k in sizes}
        self.spent = dict.fromkeys(sizes, 0.0)
        self.begun: dict[tuple[int, str], Candidate] = {}  # whose answer each k was last searched from
        self.status = dict.fromkeys(sizes, Status.STATIONARY)
        self.certificates = dict.fromkeys(sizes, NOTHING)
        self.tell = as_scipy_callback(request.callback)
        self.bar: Bar = NULL_BAR

    def go(self) -> None:
        """Some k as `minimize` does them; then down by reducing and up by growing, while that helps."""
        with bar("path", float(self._most())) as self.bar:
            self._go()

    def _most(self) -> int:
        """Searches and proofs at most: rounds that bring nothing are left out."""
        rounds = self.problems[self.sizes[0]].pieces.settings.path_rounds
        return (
            len(_landmarks(self.sizes))
            + 2 * rounds * (len(self.sizes) - 1)
            + (1 if self.wanted is None else 2) * len(self.sizes)
        )

    def _count(self, k: int) -> None:
        """One more of them begins."""
        self.bar.update(self.bar.done + 1, f"k = {k}")

    def _go(self) -> None:
        try:
            if self.request.interrupted:
                raise KeyboardInterrupt
            hidden = self.problems[self.sizes[0]].pieces.hidden  # then a walk has no exchanges to rank
            for k in self.sizes if hidden else _landmarks(self.sizes):
                self._full(k)
            for _ in range(self.problems[self.sizes[0]].pieces.settings.path_rounds):
                before = self._values()
                for k, above in zip(self.sizes[-2::-1], self.sizes[:0:-1], strict=True):
                    self._down(k, above)
                for below, k in pairwise(self.sizes):
                    self._search(k, "grown", below, self._best)
                if self._values() == before:
                    break
            self._prove()
            self._certify()
        except StopIteration:
            self._end(Status.CALLBACK_STOP)
        except KeyboardInterrupt:
            self._end(Status.INTERRUPTED)
        except OutOfTimeError:
            self._end(Status.TIME_LIMIT)
        for k, above in zip(
            self.sizes[-2::-1], self.sizes[:0:-1], strict=True
        ):  # where a limit or an interrupt left a gap
            if self.incumbents[k].best is None:
                best = self.incumbents[above].best
                begin = self.request.beginning if best is None else best.full(self.n)
                self.incumbents[k].best = fallback_point(self.problems[k], begin)

    def _end(self, status: Status) -> None:
        """All were stopped; what was proved before is proved."""
        self.status = {k: was if was is Status.OPTIMAL else status for k, was in self.status.items()}
        top = self.incumbents[self.sizes[-1]]
        top.best = top.best or fallback_point(self.problems[self.sizes[-1]], self.request.beginning)

    def _prove(self) -> None:
        """Where the walk only descended, a look at all exchanges of each answer."""
        for k in self.sizes:
            self._count(k)
            problem, incumbent = self.problems[k], self.incumbents[k]
            if (
                incumbent.best is None
                or incumbent.proved
                or self.status[k] not in (Status.STATIONARY, Status.SWAP_OPTIMAL)
            ):
                continue
            self.status[k] = Status.STATIONARY  # what was proved of an earlier answer is not of this one
            if not problem.expired and (problem.pieces.certifying or problem.pieces.spectral):
                began = time.perf_counter()
                try:
                    self._take(k, "all exchanges", settle(problem, incumbent.best))
                except UnboundedError:
                    self.status[k] = Status.UNBOUNDED
                self.spent[k] += time.perf_counter() - began

    def _certify(self) -> None:
        """A bound for each k, where one is wanted or all supports were tried; what a tree finds for one k is an answer for the next."""
        for below, k in zip([0, *self.sizes], self.sizes, strict=False):
            self._count(k)
            problem, incumbent, better = (
                self.problems[k],
                self.incumbents[k],
                self.incumbents[below].best if below else None,
            )
            if better is not None and incumbent.best is not None and better.value < incumbent.best.value:
                incumbent.best, incumbent.proved = better, False
            began, status = time.perf_counter(), conclude(problem, incumbent, self.status[k])
            self.certificates[k] = certified(problem, incumbent, status, self.wanted, lambda _: None)
            self.spent[k] += time.perf_counter() - began
            if self.certificates[k].status is Status.INTERRUPTED:
                raise KeyboardInterrupt

    def _take(self, k: int, name: str, found: Found) -> None:
        """Note where a search for one k ended, and tell the callback."""
        incumbent = self.incumbents[k]
        incumbent.take(name, found, self.request.elapsed)
        best = incumbent.best
        assert best is not None
        searches = sum(other.searches for other in self.incumbents.values())
        self.tell(lambda: best.full(self.n), best.value, searches, np.nan, self.request.elapsed)

    def _best(self, k: int) -> Candidate | None:
        return self.incumbents[k].best

    def _values(self) -> list[float]:
        return [np.inf if incumbent.best is None else incumbent.best.value for incumbent in self.incumbents.values()]

    def _full(self, k: int) -> None:
        """One k with all its starts."""
        self._count(k)
        began = time.perf_counter()
        request = replace(self.request, k=k)
        search = exploration(request, self.problems[k], self.plan, self._told)
        self.incumbents[k] = search.incumbent
        self.status[k] = search.run()
        self.spent[k] += time.perf_counter() - began
        if self.status[k] is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if self.status[k] is Status.CALLBACK_STOP:
            raise StopIteration

    def _told(self, incumbent: Incumbent) -> None:
        best = incumbent.best
        assert best is not None
        self.tell(lambda: best.full(self.n), best.value, incumbent.searches, np.nan, self.request.elapsed)

    def _down(self, k: int, above: int) -> None:
        """One k from the one above; where nothing of that fits, or that has no optimum to begin from, with all starts."""
        if self.incumbents[k].best is not None or self.status[above] is not Status.UNBOUNDED:
            self._search(k, "reduced", above, lambda above: reduced(self._best(above), self.problems[k]))
        if self.incumbents[k].best is None:
            self._full(k)

    def _search(self, k: int, name: str, neighbour: int, start: Callable[[int], Candidate | None]) -> None:
        """A local search for one k from its neighbour's answer, unless it has begun there before."""
        self._count(k)
        began, problem, incumbent, best = (
            time.perf_counter(),
            self.problems[k],
            self.incumbents[k],
            self._best(neighbour),
        )
        if self.status[k] in (Status.OPTIMAL, Status.UNBOUNDED) or (
            best is not None and self.begun.get((k, name)) is best
        ):
            return
        if best is not None:
            self.begun[k, name] = best
        try:
            if incumbent.best is None and try_all(problem, incumbent, began):
                self.status[k] = Status.OPTIMAL if incumbent.proved else Status.STATIONARY
            else:
                candidate = start(neighbour)
                if candidate is not None:
                    with one_thread():
                        self._take(k, name, local_search(problem, choose_strategy(problem), candidate))
        except UnboundedError:
            self.status[k] = Status.UNBOUNDED
        self.spent[k] += time.perf_counter() - began

    def judged(self) -> list[Result]:
        """Every answer re-solved on the raw data; one that came out above its neighbour below by a rounding takes its place."""
        results: list[Result] = []
        below: Candidate | None = None
        for k in self.sizes:
            problem, incumbent = self.problems[k], self.incumbents[k]
            if incumbent.best is None:
                raise InfeasibleError(
                    f"no point of C = {self.request.C} {asked(problem)} was found that meets every constraint"
                )
            began = time.perf_counter()
            status = conclude(problem, incumbent, self.status[k])
            request = replace(self.request, k=k, started=began - self.spent[k])
            result = judge_search(request, problem, incumbent, status, self.certificates[k])
            if (
                results and result.fun > results[-1].fun
            ):  # what was proved of this support's neighbours is not of the other's
                kept = Status.STATIONARY if status is Status.SWAP_OPTIMAL else status
                result = judge_search(
                    request,
                    problem,
                    replace(incumbent, best=below, proved=status is Status.OPTIMAL),
                    kept,
                    self.certificates[k],
                )
            else:
                below = incumbent.best
            results.append(result)
        return results


def reduced(at: Candidate | None, problem: SupportProblem) -> Candidate | None:
    """A candidate without what costs least, until k variables are left; None where C has no point then."""
    if at is None or problem.allows(at.support):
        return at
    search = without_updates(problem).search(problem)
    search.hood.stand_at(at)
    search.reduce(search.k)
    return search.hood.mark() if problem.allows(search.hood.support) else None


def _landmarks(sizes: list[int]) -> list[int]:
    """The largest k, the largest that is at most half of it, and so on."""
    found = [sizes[-1]]
    while found[-1] > sizes[0]:
        found.append(max((k for k in sizes if 2 * k <= found[-1]), default=sizes[0]))
    return found
