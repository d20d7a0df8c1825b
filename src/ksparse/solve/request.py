"""Check the arguments of the k-sparse problem, and build the problem that is searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from ksparse.errors import InfeasibleError, MissingPieceError
from ksparse.firstorder.problem import Stopping
from ksparse.losses import Loss
from ksparse.losses.base import counting_evaluations
from ksparse.search.problem import SupportProblem
from ksparse.search.settings import SearchSettings
from ksparse.search.support_rules import NoRules, Rules, closed_rows
from ksparse.search.surrogates import COLUMNS_PER_VARIABLE
from ksparse.sets import ConvexSet, WholeSpace, require_length, require_sparse_member
from ksparse.util.arrays import Array, Vector, to_float64
from ksparse.util.checks import check_indices, check_integer, check_number, check_piece, check_vector
from ksparse.util.progress import show_progress
from ksparse.util.resources import GIB, OutOfTimeError, available_memory, deadline_scope, one_thread

ASKED = 2**28  # bytes above which the available memory is checked
VECTORS = 32  # vectors of n numbers that a search with a KKT inverse holds, about (benchmarks/scale.py)
FEW = 16  # vectors that a search among some of the columns holds, with the blocks that they are read in


def thread_scope(loss: Loss) -> AbstractContextManager[None]:
    """Return a context with one BLAS thread; with the user's number if φ consists of user functions or operators."""
    return nullcontext() if loss.entries is None or loss.hides_columns else one_thread()


@contextmanager
def solve_scope(loss: Loss, deadline: float, progress: bool) -> Iterator[None]:
    """Set up what holds during a call: bars, deadline, threads, counts of evaluations.

    Arithmetic may overflow silently: values that are not finite are refused where they arise.
    """
    quiet = np.errstate(over="ignore", invalid="ignore")
    with show_progress(progress), deadline_scope(deadline), thread_scope(loss), counting_evaluations(), quiet:
        yield


@dataclass(frozen=True)
class Request:
    """min φ(x) s.t. ‖x‖₀ ≤ k, x ∈ C, checked, with the options of the run."""

    loss: Loss
    C: ConvexSet
    n: int
    k: int
    x0: Array | None  # the user's start, in the loss's array type
    stopping: Stopping  # max_time is for the whole call
    callback: Callable[..., Any] | None
    verbose: int
    started: float
    deadline: float
    interrupted: bool  # whether an interrupt came before anything was done
    before: tuple[int, int]  # evaluations of φ and ∇φ before the call, if the loss counts them itself
    passes_before: int  # over its data
    zeros: Array  # 0 in the namespace, dtype and device of x
    beginning: Array  # the user's start, or 1/n in every entry
    rules: Rules  # for supports
    by_rows: bool  # whether supports are of features with several entries of x each

    @property
    def elapsed(self) -> float:
        """Seconds since the call."""
        return time.perf_counter() - self.started


def check_request(
    loss: Loss, k: int, C: ConvexSet | None, x0: Any, stopping: Stopping, callback: Any = None, verbose: int = 0, *,
    rules: tuple[Any, Any, Any] = (None, None, None), by_entries: bool = False, name: str = "k", least: int = 1,
) -> Request:  # fmt: skip
    """Check the k-sparse problem: loss and set fit each other, and C has a point with at most k nonzeros.

    A loss of several coefficients per feature is searched by its features. With `by_entries`, an option is given that
    is only supported for entries; then the entries of a feature are a group. `rules` are groups, group_limits and
    requires; `name` is that of the argument k, and `least` its least value.
    """
    started = time.perf_counter()
    loss, C, start = check_pieces(loss, C, x0)
    length = loss.n or C.n or (None if start is None else start.shape[0])
    if length is None:
        raise ValueError("the number of variables is not known: give x0, or n to the loss")
    n, width = int(length), loss.per_feature
    require_length(C, n)
    by_rows = width > 1 and loss.has_row_problem and C.whole_space and not by_entries
    if width > 1 and loss.hides_columns:
        raise MissingPieceError(f"{type(loss).__name__} needs data that show their columns, or fewer of them")
    if width > 1 and not by_rows:
        for option, value in zip(("groups", "group_limits", "requires"), rules, strict=True):
            if value is not None:
                others = "a constraint set, gap or min_nonzero"
                raise MissingPieceError(f"{option} with {type(loss).__name__} cannot be combined with {others}")
        rules = (np.repeat(np.arange(n // width), width), None, None)
    checked = make_rules(*rules, n=n // width if by_rows else n)
    k = check_integer(k, name, least, int(checked.weight.sum()))
    C = C.for_length(n)
    deadline = np.inf if stopping.max_time is None else started + stopping.max_time
    with deadline_scope(deadline):
        require_sparse_member(C, n, checked.widest(k))
    zeros, before, interrupted = loss.zeros(n), loss.evaluations or (0, 0), False
    try:
        check_user_pieces(loss, C, zeros, start)
    except KeyboardInterrupt:  # user functions may be slow
        interrupted = True
    return Request(
        loss, C, n, k, start, stopping, callback, verbose, started, deadline, interrupted, before, loss.passes, zeros,
        zeros + 1.0 / n if start is None else start, checked, by_rows,
    )  # fmt: skip


def check_pieces(loss: Loss, C: ConvexSet | None, x0: Any) -> tuple[Loss, ConvexSet, Array | None]:
    """Check the loss and the set; return them with x0 as a vector of the loss's array type."""
    check_piece(loss, Loss, "loss")
    C = WholeSpace() if C is None else C
    check_piece(C, ConvexSet, "C")
    n = loss.n or C.n
    if x0 is None:
        return loss if n is None or loss.n is not None else loss.for_vectors_like(np.zeros(n)), C, None
    start = check_vector(x0, "x0", n, kind=loss.given_kind) + 0.0  # a copy: the result never shares memory with x0
    return loss.for_vectors_like(start), C, start


def check_user_pieces(loss: Loss, C: ConvexSet, zeros: Array, start: Array | None) -> None:
    """Check at a point of C that pieces made of user functions are what they claim to be."""
    if C.skip_self_check and loss.skip_self_check:
        return
    C = C.like(zeros)
    with thread_scope(loss):
        C.self_check(zeros)
        loss.self_check(zeros + 1.0 / zeros.shape[0] if start is None else start, C.project)


def support_problem(
    request: Request, forced_in: Any, forced_out: Any, min_nonzero: Any, settings: SearchSettings | None = None,
    most: int | None = None,
) -> SupportProblem:  # fmt: skip
    """Return the problem that is searched, after a check that it is feasible; for several k, `most` is the largest."""
    n, k, width, rules = request.n, request.k, request.loss.per_feature, request.rules
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
    problem = SupportProblem.of(
        request.loss, request.C, n // width if request.by_rows else n, k, forced_in=inside, forced_out=outside,
        floor=_check_min_nonzero(min_nonzero, n), deadline=request.deadline, settings=settings, rules=rules,
        most=rules.widest(most or k), by_rows=request.by_rows,
    )  # fmt: skip
    if problem.floors.any and not _supports_min_nonzero(problem):
        given = f"{type(request.loss).__name__} on {request.C}"
        raise MissingPieceError(f"min_nonzero needs a convex quadratic loss and a polyhedral set, not {given}")
    if rules.any:
        check_rules_feasible(problem, outside, k)
    elif problem.forced.size > k:
        by = "" if problem.forced.size == inside.size else ": forced_in and those that bounds and equations keep from 0"
        what = "features" if request.by_rows else "variables"
        raise InfeasibleError(f"{problem.forced.size} {what} are forced in, more than k = {k}{by}")
    clash = np.intersect1d(problem.forced, outside)
    if clash.size:
        why = "whose bounds or equations exclude 0: no point of C is left"
        raise InfeasibleError(f"forced_out holds variable {clash[0]}, {why}")
    _check_memory(problem)
    return problem


def _check_memory(problem: SupportProblem) -> None:
    """Raise `MemoryError` if vectors of n numbers and rows or columns of H do not fit in memory."""
    k, n, loss, settings = problem.k, problem.n, problem.loss, problem.settings
    if problem.row_problem is not None:
        needed = 8 * (VECTORS + 3 * k) * (n + problem.row_problem.width)
    elif problem.columns_on_demand:
        needed = 8 * (FEW * n + 2 * COLUMNS_PER_VARIABLE * k * (loss.entries or 0) // n)
    else:
        needed = 8 * (VECTORS + (3 * k if loss.has_columns else 0)) * n
    if needed >= ASKED and needed > (available := available_memory()):
        missing = f"({n} variables, k = {k}), {available / GIB:.2f} GiB are available"
        fewer = f"memory=...) below {settings.memory / GIB:.2g} GiB, which keeps fewer rows of the Gram matrix"
        remedy = f"use fewer columns, a smaller k, or settings=SearchSettings({fewer}"
        raise MemoryError(f"the search needs {needed / GIB:.2f} GiB in addition to the data {missing}: {remedy}")


def _check_min_nonzero(min_nonzero: Any, n: int) -> Vector | float:
    """Return the minimum absolute value of a nonzero: one number, or one per variable."""
    if np.ndim(min_nonzero) == 0:
        return check_number(min_nonzero, "min_nonzero", at_least=0)
    floor: Vector = to_float64(check_vector(min_nonzero, "min_nonzero", n))
    if floor.min(initial=0.0) < 0:
        raise ValueError(f"min_nonzero must be >= 0, got {floor.min():g} for variable {floor.argmin()}")
    return floor


def _supports_min_nonzero(problem: SupportProblem) -> bool:
    with suppress(OutOfTimeError):
        return problem.linear is not None and problem.model is not None and problem.can.treated_as_convex
    return True  # out of time, the call returns a feasible point at most


def make_rules(groups: Any = None, group_limits: Any = None, requires: Any = None, *, n: int) -> Rules:
    """Return the rules that the arguments describe."""
    if groups is None and group_limits is None and requires is None:
        return NoRules.of(n)
    label, names, least, most = _check_limits(group_limits, n)
    weight, pairs, of = np.ones(n), list(_child_parent_pairs(requires, n)), None
    if groups is not None:
        given, of = _check_labels(groups, "groups", n)
        weight = np.zeros(n)
        for group, name in enumerate(given):
            members = np.flatnonzero(of == group)
            weight[members[0]] = 1.0
            pairs += pairwise([*members.tolist(), int(members[0])])  # in a circle: each member requires all others
            if np.unique(label[members]).size > 1:
                several = f"those of group {name!r} have several"
                raise ValueError(f"group_limits must give all variables of a group one label; {several}")
    return Rules(label, tuple(names), least, most, weight, closed_rows(n, pairs) if pairs else None, of)


def _check_labels(labels: Any, name: str, n: int) -> tuple[list[Any], Vector]:
    """Return the distinct labels, in the order of their first variables, and which of them each variable has."""
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


def _check_limits(group_limits: Any, n: int) -> tuple[Vector, list[Any], Vector, Vector]:
    """Return each variable's label as a number (the last: no limits), and all names, minimum and maximum counts."""
    if group_limits is None:
        return np.zeros(n, dtype=np.intp), [None], np.zeros(1), np.full(1, float(n))
    shape = "group_limits must be (labels, {label: (min, max)})"
    if not isinstance(group_limits, tuple | list) or len(group_limits) != 2 or not isinstance(group_limits[1], Mapping):
        raise TypeError(f"{shape}, got {type(group_limits).__name__}")
    given, of = _check_labels(group_limits[0], "the labels of group_limits", n)
    names = list(group_limits[1])
    least, most = np.zeros(len(names) + 1), np.full(len(names) + 1, float(n))
    label = np.full(n, len(names), dtype=np.intp)
    for place, (name, limits) in enumerate(group_limits[1].items()):
        if name not in given:
            raise ValueError(f"group_limits has limits for label {name!r}, which no variable has")
        if not isinstance(limits, tuple | list) or len(limits) != 2:
            raise TypeError(f"{shape}, got {limits!r} for label {name!r}")
        least[place] = check_integer(limits[0], f"the minimum count in group_limits for label {name!r}", 0)
        if limits[1] is not None:
            most[place] = check_integer(limits[1], f"the maximum count in group_limits for label {name!r}", 0)
        if least[place] > most[place]:
            raise ValueError(f"group_limits requires at least {limits[0]} and at most {limits[1]} of label {name!r}")
        label[of == given.index(name)] = place
    return label, [*names, None], least, most


def _child_parent_pairs(requires: Any, n: int) -> Iterator[tuple[int, int]]:
    """Yield each child with each of its parents."""
    if requires is None:
        return
    if not isinstance(requires, Mapping):
        raise TypeError(f"requires must be {{child: parents}} in indices of variables, got {type(requires).__name__}")
    for child, parents in requires.items():
        check_integer(child, "a child of requires", 0, n - 1)
        for parent in check_indices([parents] if isinstance(parents, Integral) else parents, f"requires[{child}]"):
            yield int(child), check_integer(int(parent), f"a parent in requires[{child}]", 0, n - 1)


def check_rules_feasible(problem: SupportProblem, out: Vector, k: int) -> None:
    """Raise `InfeasibleError` if no support of k satisfies the rules, `MissingPieceError` for unsupported rules."""
    rules, forced, allowed = problem.rules, problem.forced, problem.allowed
    may_vanish = allowed & (problem.floors.size == 0)
    if rules.brings is None:  # a member that is 0 matters only for labels with a minimum count
        may_vanish &= (rules.least > 0)[rules.label]
    if rules.strict and may_vanish.any():
        needed_for = "all variables of labels with a minimum count in group_limits (with groups or requires: for all)"
        first = np.flatnonzero(may_vanish)[0]
        raise MissingPieceError(f"min_nonzero is 0 for variable {first}; it must be > 0 for {needed_for}")
    _check_closure(rules, forced, allowed, out)
    what, is_forced = "groups" if rules.group is not None else "variables", np.isin(np.arange(rules.n), forced)
    inside = np.bincount(rules.label[forced], rules.weight[forced], rules.least.size)
    # members that a variable would bring into the support, itself included
    brought = np.ones(rules.n) if rules.brings is None else rules.brings @ np.where(is_forced, 0.0, rules.weight)
    for place, name in enumerate(rules.names[:-1]):
        least, most = int(rules.least[place]), int(rules.most[place])
        usable = (rules.label == place) & (rules.weight > 0) & allowed
        n_usable, n_alone = int(usable.sum()), int((usable & ((brought <= 1) | is_forced)).sum())
        minimum = f"group_limits requires at least {least} of label {name!r}"
        if inside[place] > most:
            held = f"{inside[place]:g} {what} of it are forced in"
            raise InfeasibleError(f"group_limits allows at most {most} of label {name!r}, but {held}")
        if least > k:
            raise InfeasibleError(f"{minimum}, more than k = {k}")
        if n_usable < least:
            raise InfeasibleError(f"{minimum}, of which {n_usable} {what} can be used")
        if n_alone < least:
            raise MissingPieceError(f"{minimum}; this needs as many {what} of it without parents, there are {n_alone}")
    needed = np.maximum(inside, rules.least).astype(int)
    if needed.sum() > k:
        counts = [f"{needed[p]} of label {name!r}" for p, name in enumerate(rules.names[:-1]) if rules.least[p]]
        listed = f" ({', '.join(counts)})" if counts else ""
        total = f"{needed.sum()} {what}, more than k = {k}"
        raise InfeasibleError(f"forced-in {what} and minimum counts in group_limits{listed} need {total}")


def _check_closure(rules: Rules, forced: Vector, allowed: Vector, out: Vector) -> None:
    """Raise `InfeasibleError` if a forced variable, or one that it requires, cannot be in the support."""
    barred = np.isin(forced, out) | ~allowed[forced]
    for i in forced[np.argsort(barred, kind="stable")]:  # first those that are usable themselves
        for needed in rules.closure(np.array([i])):
            if needed in out or not allowed[needed]:
                why = "is in forced_out" if needed in out else "cannot be used"
                by = "has in its group" if rules.group is not None else "requires"
                clause = f"it {why}" if needed == i else f"{by} variable {needed}, which {why}"
                raise InfeasibleError(f"variable {i} is forced in {'but' if needed == i else 'and'} {clause}")
