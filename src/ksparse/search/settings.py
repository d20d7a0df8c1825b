"""The numbers that steer a search over supports, in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ksparse.util.checks import check_integer, check_number

POSITIVE = ("clear", "entering", "powers", "weights")  # of 0 the search would have nothing to go by
RANGES = ("kick", "replaced", "replaced_models")  # shares of a support, between which chance decides


@dataclass(frozen=True)
class SearchSettings:
    """How far a search goes: the numbers that steer it, each with its reason at its line in the source.

    A line names the benchmark that chose its default; the others are what worked on the way, chosen by none. Work is counted in changes of
    a support, so that the same settings give the same answer on every machine.

    Raises
    ------
    ValueError, TypeError
        If a number is negative or 0 where one above 0 is needed, a count is not whole, or a pair is not (least, most).

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> thorough = ks.SearchSettings(changes=5_000, returns=20)
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, settings=thorough).x
    array([ 3., -2.,  0.])
    """

    enumerated: int = (
        2_000  # supports that are all tried, and so proved, where the best value on one is a direct solve (tests/fuzz)
    )
    enumerated_dear: int = 60  # the same where it takes a first-order method
    changes: int = 1_300  # of a support in one search on a factorisation that is updated, where k is large (table5.py)
    changes_few: int = 700  # the same where k is small and all is seen sooner,
    changes_squared: float = 0.125  # and as many more for the square of k
    changes_each: int = 40  # the same for each variable of the support
    changes_solved: int = (
        400  # the same where every change is a quadratic program: about the time of the search before this one
    )
    changes_smooth: int = 300  # the same where it is Newton's method
    changes_wide: int = 100  # the same where it is Newton's method on all classes at once (common_features.py)
    changes_dear: int = 60  # the same where it is a first-order method
    aside: float = 0.25  # of the changes, where each is dear, go to other starts (tests/fuzz)
    depth: float = 0.25  # ways by other k go this part of k far (table5.py)
    kick: tuple[float, float] = (0.25, 0.5)  # of the support leaves in a kick (table5.py)
    returns: int = 8  # kicks in a row that led nowhere, after which a search ends (table5.py)
    clear: float = 10.0  # where each variable of the support is worth so much more than any other, it is not in doubt (best_subset.py)
    entering: int = 64  # variables looked at for a swap on an updated factorisation; the proof looks at all (table5.py)
    walks: int = 16  # variables from which a walk leads further than ways by other k (table5.py; of fewer it leads less far: knob.py)
    walked: int = 16  # variables looked at for a step of a walk (table5.py)
    walked_more: float = (
        1.25  # times as many changes where walks make them: a step costs less than another swap (table5.py)
    )
    tabu: tuple[float, float] = (
        0.2,
        0.1,
    )  # of k: steps of a walk that one who left stays out, and one who entered stays (table5.py)
    patience: float = 4.0  # of k: steps of a walk that lead to nothing better, after which it ends (table5.py)
    compared: int = 8  # highest-ranked moves of a component that are made, for the best of them
    paired: tuple[int, int] = (4, 6)  # leaving and entering variables that are paired where only gradients rank them
    paired_blocks: tuple[int, int] = (
        4,
        12,
    )  # the same where variables bring others, and blocks leave for one of them (rules.py)
    ruled: int = 4  # times as many changes where variables bring others, and exchanges of blocks are tried in turn
    tried: int = 64  # moves that are solved in turn for one that improves, where the ranking bounds their gains
    guessed: int = 12  # the same where the ranking is a guess
    proved: int = 3_000  # moves that are solved one by one in a proof
    proved_spectral: int = 2_000  # eigenvalue problems in a proof
    together: int = (
        8  # searches that do not know of each other: a fixed number, so that the answer does not depend on n_jobs
    )
    enough: float = 0.8  # of a time limit, for more searches where no effort is given: a proof comes after
    path_rounds: int = 3  # down and up a path at most
    restarts: int = 4  # from kicked supports, where no kicks belong to the search itself
    replaced: tuple[float, float] = (0.1, 0.5)  # of the support is replaced at random in one of them
    kicked_models: int = 8  # kicked supports from which models are taken anew, where the data are small (knob.py)
    replaced_models: tuple[float, float] = (0.5, 1.0)  # of the support is replaced in one of them (knob.py)
    cached: int = 2**20  # entries of data that are small
    models: int = 25  # second-order models that are taken anew, one after the other
    large: int = (
        2**19
    )  # entries of the data from which losses that are not quadratic are searched by models alone (logistic.py)
    memory: int = (
        2**28
    )  # bytes of rows of AᵀDA that are remembered; where k of them do not fit, columns are shown as where data hide them
    shown: int = 4  # columns that are asked for, for each variable of the support, where not all are ranked (scale.py)
    looks: int = 8  # times that gradients may point at others
    relaxed: int = 500  # variables up to which the perspective relaxation is solved for supports to start from
    relaxed_steps: int = 100  # of its first-order method
    rounded: int = 24  # supports that are drawn by its z
    drawn: int = 8  # supports that are drawn at random where the relaxation says nothing
    elite: int = 6  # local optima that are recombined
    children: int = 24  # supports made of two of them (rows.py)
    screened: int = 64  # columns of V that are looked at for a component
    refined: int = 8  # of them, by power iterations
    powers: int = 32  # random starts of truncated power iterations at a time (sparse_pca.py)
    weights: tuple[float, ...] = (
        10.0,
        1.0,
        0.1,
        0.01,
    )  # of penalised starts, relative to the curvature of φ along one variable
    start_tol: float = 1e-4  # relative change of F at which a first-order start has done its part
    start_steps: int = 300  # of a first-order start
    directions: int = 4  # of negative curvature along which a quadratic that is not convex is begun (tests/fuzz)
    value_newton: int = 25  # steps of Newton's method, for a value to compare
    value_steps: int = 400  # of a first-order method, for a value to compare
    value_residual: float = 1e-6  # the residual that such a value is computed to

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value, default = f"settings.{field.name}", getattr(self, field.name), field.default
            several, whole = isinstance(default, tuple), field.type in ("int", "tuple[int, int]")
            length = len(default) if isinstance(default, tuple) and field.name != "weights" else None
            if several != isinstance(value, tuple) or (length is not None and len(value) != length):
                what = f"a tuple of {'' if length is None else f'{length} '}numbers" if several else "one number"
                raise TypeError(f"{name} must be {what}, got {value!r}")
            for number in value if several else (value,):
                if whole:
                    check_integer(number, name, int(field.name in POSITIVE))
                elif field.name in POSITIVE:
                    check_number(number, name, above=0)
                else:
                    check_number(number, name, at_least=0)
            if field.name in RANGES and value[0] > value[1]:
                raise ValueError(f"{name} must be (least, most), got {value}")


DEFAULTS = SearchSettings()
