"""Check the arguments of every function that solves the k-sparse problem, and build the problem to search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.firstorder.problem import Problem, Stopping
from ksparse.losses import Loss
from ksparse.penalties import NoPenalty
from ksparse.search.by_columns import COLUMNS_PER_VARIABLE
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.search.support_rules import NO_RULES, NoRules, Rules, closed_rows
from ksparse.sets import ConvexSet, WholeSpace, require_length, require_sparse_member
from ksparse.util.arrays import Array, Vector, to_float64
from ksparse.util.checks import check_indices, check_integer, check_number, check_piece, check_vector
from ksparse.util.evaluations import counted
from ksparse.util.resources import GIB, OutOfTimeError, available_memory, deadline_scope, one_thread

VECTORS = 32  # vectors of n numbers that a search with a KKT inverse holds, about (scale.py)
FEW = 16  # the same among columns that are shown, with the blocks that they are read in
ASKED = 2**28  # bytes from which it is asked whether they are there


def fitting_threads(loss: Loss) -> AbstractContextManager[None]:
    """Return a context with one BLAS thread, or with the user's number where φ consists of the user's own functions or operators."""
    return nullcontext() if loss.entries is None or loss.hides_columns else one_thread()


def evaluations_of(loss: Loss) -> tuple[int, int]:
    """Evaluations of φ and ∇φ so far: those that the loss counts itself, else those of the current call."""
    return counted() if loss.evaluations is None else loss.evaluations


@dataclass(frozen=True)
class Request:
    """min φ(x) s.t. ‖x‖₀ ≤ k, x ∈ C, checked, and the manners of the run."""

    loss: Loss
    C: ConvexSet
    n: int
    k: int
    x0: Array | None  # the user's start, in the loss's kind of array
    stopping: Stopping  # max_time is for everything together
    callback: Callable[..., Any] | None = None
    verbose: int = 0
    started: float = field(default_factory=time.perf_counter)
    interrupted: bool = False  # whether that happened before anything was done
    before: tuple[int, int] = (0, 0)  # evaluations of φ and ∇φ before the call, where the loss counts them itself
    passes_before: int = 0  # over its data
    rules: Rules = NO_RULES  # what supports must obey
    by_rows: bool = False  # whether supports are those of features with several entries of x each

    @property
    def members(self) -> int:
        """How many a support may have: variables, groups, or features with several entries of x each."""
        return self.rules.members

    @property
    def elapsed(self) -> float:
        """Seconds since the call."""
        return time.perf_counter() - self.started

    @property
    def passes(self) -> int:
        """Over data that are read by blocks, since the call."""
        return self.loss.passes - self.passes_before

    @property
    def deadline(self) -> float:
        """When the time is up."""
        return np.inf if self.stopping.max_time is None else self.started + self.stopping.max_time

    @property
    def kind(self) -> Array:
        """0 in the namespace, dtype and device of x."""
        return Problem(self.loss, NoPenalty(), self.C, self.n).zeros()

    @property
    def beginning(self) -> Array:
        """The user's start, or 1/n in every entry."""
        return self.kind + 1.0 / self.n if self.x0 is None else self.x0

    def stopping_now(self) -> Stopping:
        """The stopping rule with the time that is left."""
        if self.stopping.max_time is None:
            return self.stopping
        return replace(self.stopping, max_time=max(0.0, self.deadline - time.perf_counter()))


def check_request(
    loss: Loss,
    k: int,
    C: ConvexSet | None,
    x0: Any,
    stopping: Stopping,
    callback: Any = None,
    verbose: int = 0,
    name: str = "k",
    groups: Any = None,
    group_limits: Any = None,
    requires: Any = None,
    *,
    by_entries: bool = False,
    least: int = 1,
) -> Request:
    """The k-sparse problem, checked: the pieces fit each other, and C has a point with at most k nonzeros.

    A loss of several coefficients per feature is searched by its features; `by_entries`: what is asked of it is known
    of entries only, then those of a feature are a group. `least`: the least k.
    """
    started = time.perf_counter()
    loss, C, start = check_pieces(loss, C, x0)
    n = _length(loss, C, start)
    by_rows = loss.per_feature > 1 and loss.has_row_problem and C.whole_space and not by_entries
    if loss.per_feature > 1 and loss.hides_columns:
        raise MissingPieceError(f"{type(loss).__name__} needs data that show their columns, or fewer of them")
    if loss.per_feature > 1 and not by_rows:
        _refuse_rules(loss, groups=groups, group_limits=group_limits, requires=requires)
        groups = np.repeat(np.arange(n // loss.per_feature), loss.per_feature)
    rules = make_rules(groups, group_limits, requires, n=n // loss.per_feature if by_rows else n)
    k = check_integer(k, name, least, rules.members)
    C = C.for_length(n)
    with deadline_scope(np.inf if stopping.max_time is None else started + stopping.max_time):
        require_sparse_member(C, n, rules.widest(k))
    before, interrupted = loss.evaluations or (0, 0), False
    try:
        try_out(loss, C, n, start)
    except KeyboardInterrupt:  # of the user's own functions, which may take their time
        interrupted = True
    return Request(
        loss, C, n, k, start, stopping, callback, verbose, started, interrupted, before, loss.passes, rules, by_rows
    )


def _refuse_rules(loss: Loss, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise MissingPieceError(
                f"{name} with {type(loss).__name__} cannot be combined with a constraint set, gap or min_nonzero"
            )


def check_pieces(loss: Loss, C: ConvexSet | None, x0: Any) -> tuple[Loss, ConvexSet, Array | None]:
    """The pieces checked, and x0 as a vector of the loss's kind."""
    check_piece(loss, Loss, "loss")
    C = WholeSpace() if C is None else C
    check_piece(C, ConvexSet, "C")
    n = loss.n or C.n
    if x0 is None:
        return loss if n is None else loss.for_vectors_like(np.zeros(n)), C, None
    start = check_vector(x0, "x0", n, kind=loss.given_kind) + 0.0  # a copy: the answer never shares memory with x0
    return loss.for_vectors_like(start), C, start


def try_out(loss: Loss, C: ConvexSet, n: int, start: Array | None) -> None:
    """Let the pieces that are functions of the user's show once that they are what they say, at a point of C."""
    problem = Problem(loss, NoPenalty(), C, n)
    with fitting_threads(loss):
        C.self_check(problem.zeros())
        loss.self_check(problem.zeros() + 1.0 / n if start is None else start, problem.C.project)


def _length(loss: Loss, C: ConvexSet, start: Array | None) -> int:
    n = loss.n or C.n or (None if start is None else start.shape[0])
    if n is None:
        raise ValueError("the number of variables is not known: give x0, or n to the loss")
    require_length(C, int(n))
    return int(n)


def support_problem(
    request: Request,
    forced_in: Any,
    forced_out: Any,
    min_nonzero: Any,
    settings: SearchSettings | None = None,
    most: int | None = None,
) -> SupportProblem:
    """The problem that is searched, after a look at whether it can be met; for several k, `most` is the largest."""
    n, k, width = request.n, request.k, request.loss.per_feature
    if settings is not None and not isinstance(settings, SearchSettings):
        raise TypeError(f"settings must be a ksparse.SearchSettings, got {type(settings).__name__}")
    inside, outside = check_indices(forced_in, "forced_in"), check_indices(forced_out, "forced_out")
    for indices, name in ((inside, "forced_in"), (outside, "forced_out")):
        if indices.size and indices[-1] >= n // width:
            what = "variables" if width == 1 else "features"
            raise ValueError(f"{name} must be below the number of {what} {n // width}, got {indices[-1]}")
    both = np.intersect1d(inside, outside)
    if both.size:
        raise ValueError(f"forced_in and forced_out must not share a variable, both hold {both[0]}")
    if width > 1 and not request.by_rows:
        inside, outside = (np.asarray((rows[:, None] * width + np.arange(width)).ravel()) for rows in (inside, outside))
    floor, rules = _floor(min_nonzero, n), request.rules
    problem = SupportProblem.of(
        request.loss,
        request.C,
        n // width if request.by_rows else n,
        k,
        forced_in=inside,
        forced_out=outside,
        floor=floor,
        deadline=request.deadline,
        settings=settings,
        most=rules.widest(most or k),
        rules=rules,
        by_rows=request.by_rows,
    )
    if problem.floors.any and not _knows_floors(problem):
        raise MissingPieceError(
            f"min_nonzero needs a convex quadratic loss and a polyhedral set, not {type(request.loss).__name__} on {request.C}"
        )
    if rules.any:
        require_obedient(problem, outside, k)
    elif problem.forced.size > k:
        by = "" if problem.forced.size == inside.size else ": forced_in and those that bounds and equations keep from 0"
        what = "features" if request.by_rows else "variables"
        raise InfeasibleError(f"{problem.forced.size} {what} are forced in, more than k = {k}{by}")
    clash = np.intersect1d(problem.forced, outside)
    if clash.size:
        raise InfeasibleError(
            f"forced_out holds variable {clash[0]}, whose bounds or equations exclude 0: no point of C is left"
        )
    require_memory(problem)
    return problem


def require_memory(problem: SupportProblem) -> None:
    """`MemoryError` with the numbers, before anything is begun, where the search would not fit."""
    needed = _memory_needed(problem)
    if needed < ASKED:
        return
    available = available_memory()
    if needed > available:
        raise MemoryError(
            f"a search among {problem.n} variables for k = {problem.k} takes about {needed / GIB:.2f} GiB beside the data, and "
            f"{available / GIB:.2f} GiB are to be had: use fewer columns, a smaller k, or settings=SearchSettings(memory=...) below "
            f"{problem.settings.memory / GIB:.2g} GiB, which keeps fewer rows of the Gram matrix"
        )


def _memory_needed(problem: SupportProblem) -> int:
    """Return about how many bytes a search takes beside the data: vectors of n numbers and, of H, k rows thrice or the columns shown."""
    k, n, loss = problem.k, problem.n, problem.loss
    if problem.row_problem is not None:
        return 8 * (VECTORS + 3 * k) * (n + problem.row_problem.width)
    if problem.can.columns_on_demand:
        return 8 * (FEW * n + 2 * COLUMNS_PER_VARIABLE * k * (loss.entries or 0) // n)
    return 8 * (VECTORS + (3 * k if loss.has_columns else 0)) * n


def _floor(min_nonzero: Any, n: int) -> Vector | float:
    """The least size of a nonzero: one number, or one per variable."""
    if np.ndim(min_nonzero) == 0:
        return check_number(min_nonzero, "min_nonzero", at_least=0)
    floor: Vector = to_float64(check_vector(min_nonzero, "min_nonzero", n))
    if floor.min(initial=0.0) < 0:
        raise ValueError(f"min_nonzero must be >= 0, got {floor.min():g} for variable {floor.argmin()}")
    return floor


def _knows_floors(problem: SupportProblem) -> bool:
    try:
        return problem.linear is not None and problem.model is not None and problem.can.treated_as_convex
    except OutOfTimeError:  # then no more than a point is asked for
        return True


def make_rules(groups: Any = None, group_limits: Any = None, requires: Any = None, *, n: int) -> Rules:
    """Return the rules that the arguments describe."""
    if groups is None and group_limits is None and requires is None:
        return NoRules.of(n)
    label, names, least, most = _limits(group_limits, n)
    weight, pairs, of = np.ones(n), list(_needs(requires, n)), None
    if groups is not None:
        given, of = _labels(groups, "groups", n)
        weight = np.zeros(n)
        for group in range(len(given)):
            members = np.flatnonzero(of == group)
            weight[members[0]] = 1.0
            pairs += [
                *pairwise(members.tolist()),
                (int(members[-1]), int(members[0])),
            ]  # round in a circle: each needs all others
            if np.unique(label[members]).size > 1:
                raise ValueError(
                    f"group_limits must give all variables of a group one label, those of group {given[group]!r} have several"
                )
    brings = closed_rows(n, pairs) if pairs else None
    return Rules(label, tuple(names), least, most, weight, brings, of)


def _labels(labels: Any, name: str, n: int) -> tuple[list[Any], Vector]:
    """The distinct labels, in the order of their first variables, and which of them each variable has."""
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must hold a label for each of the {n} variables, got {type(labels).__name__}")
    given = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(given) != n:
        raise ValueError(f"{name} must hold a label for each of the {n} variables, got {len(given)}")
    try:
        places = {label: place for place, label in enumerate(dict.fromkeys(given))}
    except TypeError as error:
        raise TypeError(f"{name} must hold labels such as names or numbers: {error}") from error
    return list(places), np.array([places[label] for label in given], dtype=np.intp)


def _limits(group_limits: Any, n: int) -> tuple[Vector, list[Any], Vector, Vector]:
    """Each variable's label as a number, the labels' names, and the least and the most of each; those without limits are the last one."""
    if group_limits is None:
        return np.zeros(n, dtype=np.intp), [None], np.zeros(1), np.full(1, float(n))
    shape = "group_limits must be (labels, {label: (least, most)})"
    if not isinstance(group_limits, tuple | list) or len(group_limits) != 2 or not isinstance(group_limits[1], Mapping):
        raise TypeError(f"{shape}, got {type(group_limits).__name__}")
    given, of = _labels(group_limits[0], "the labels of group_limits", n)
    names = list(group_limits[1])
    least, most = np.zeros(len(names) + 1), np.full(len(names) + 1, float(n))
    label = np.full(n, len(names), dtype=np.intp)
    for place, (name, limits) in enumerate(group_limits[1].items()):
        if name not in given:
            raise ValueError(f"group_limits has limits for label {name!r}, which no variable is labelled with")
        if not isinstance(limits, tuple | list) or len(limits) != 2:
            raise TypeError(f"{shape}, got {limits!r} for label {name!r}")
        least[place] = check_integer(limits[0], f"the least number of group_limits for label {name!r}", 0)
        if limits[1] is not None:
            most[place] = check_integer(limits[1], f"the most of group_limits for label {name!r}", 0)
        if least[place] > most[place]:
            raise ValueError(f"group_limits asks for at least {limits[0]} and at most {limits[1]} of label {name!r}")
        label[of == given.index(name)] = place
    return label, [*names, None], least, most


def _needs(requires: Any, n: int) -> Iterator[tuple[int, int]]:
    """Each child with each of its parents."""
    if requires is None:
        return
    if not isinstance(requires, Mapping):
        raise TypeError(f"requires must be {{child: parents}} in indices of variables, got {type(requires).__name__}")
    for child, parents in requires.items():
        check_integer(child, "a child of requires", 0, n - 1)
        listed = [parents] if isinstance(parents, Integral) else parents
        for parent in check_indices(listed, f"requires[{child}]"):
            yield int(child), check_integer(int(parent), f"a parent in requires[{child}]", 0, n - 1)


def require_obedient(problem: SupportProblem, out: Vector, k: int) -> None:
    """`InfeasibleError` where no support of k obeys, saying who cannot be served; `MissingPieceError` for rules that are not known."""
    rules, forced, allowed = problem.rules, problem.forced, problem.allowed
    faint = allowed & (problem.floors.size == 0)
    if rules.brings is None:  # a member that is 0 is missed only where there must be some
        faint &= (rules.least > 0)[rules.label]
    if rules.strict and faint.any():
        raise MissingPieceError(
            "min_nonzero must be above 0 for all variables of labels with a least number in group_limits, or, with requires or groups, for "
            f"all; it is 0 for variable {np.flatnonzero(faint)[0]}"
        )
    _require_parents(rules, forced, allowed, out)
    what, inside = (
        "groups" if rules.grouped else "variables",
        np.bincount(rules.label[forced], rules.weight[forced], rules.least.size),
    )
    apart = (
        np.ones(rules.n)
        if rules.brings is None
        else rules.brings @ np.where(np.isin(np.arange(rules.n), forced), 0.0, rules.weight)
    )
    for place, name in enumerate(rules.names[:-1]):
        least, most, member = (
            int(rules.least[place]),
            int(rules.most[place]),
            (rules.label == place) & (rules.weight > 0),
        )
        if inside[place] > most:
            raise InfeasibleError(
                f"group_limits allows {most} of label {name!r}, and {inside[place]:g} {what} of it are forced in"
            )
        if least > k:
            raise InfeasibleError(f"group_limits asks for at least {least} of label {name!r}, more than k = {k}")
        open_ = int((member & allowed).sum())
        if open_ < least:
            raise InfeasibleError(
                f"group_limits asks for at least {least} of label {name!r}, of which {open_} {what} can be used"
            )
        alone = int((member & allowed & ((apart <= 1) | np.isin(np.arange(rules.n), forced))).sum())
        if alone < least:
            raise MissingPieceError(
                f"group_limits asks for at least {least} of label {name!r}, of which only {alone} {what} need no others by "
                "requires: a least number is known for labels that have as many"
            )
    needed = int(np.maximum(inside, rules.least).sum())
    if needed > k:
        asks = [
            f"{int(max(inside[p], rules.least[p]))} of label {name!r}"
            for p, name in enumerate(rules.names[:-1])
            if rules.least[p]
        ]
        listed = f" ({', '.join(asks)})" if asks else ""
        raise InfeasibleError(
            f"what is forced in and the least numbers of group_limits{listed} make {needed} {what}, more than k = {k}"
        )


def _require_parents(rules: Rules, forced: Vector, allowed: Vector, out: Vector) -> None:
    """That what is forced in may be there, with all that it needs."""
    barred = np.isin(forced, out) | ~allowed[forced]
    for i in forced[np.argsort(barred, kind="stable")]:  # who needs another first
        for needed in rules.closure(np.array([i])):
            if needed in out or not allowed[needed]:
                why = "is in forced_out" if needed in out else "cannot be used"
                by = "is in its group" if rules.grouped else "it requires"
                whom = f"variable {needed}, which {by}, {why}" if needed != i else f"it {why}"
                raise InfeasibleError(f"variable {i} is always in the support, but {whom}")
