"""Settings of a search over supports."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ksparse.util.checks import check_integer, check_number


@dataclass(frozen=True)
class SearchSettings:
    """How far a search over supports goes.

    Each setting trades run time for better answers or more proofs. Work is counted in changes of a support (variables
    that enter or leave), so that the same settings give the same answer on every machine. 0 switches a part off, except
    for `walks` and `large`, where it means always. `effort` of `minimize` is the simpler way to a longer search.

    Parameters
    ----------
    enumerated : int, default=2000
        If there are at most this many supports, evaluate all of them, which proves the best one optimal. If they
        cannot be solved directly (losses that are not quadratic), the limit is 1/33 of this. More proves larger
        problems and delays the search of others.
    changes : int, default=1300
        Work of one search if gains are exact and k is large; the work of all other searches grows in proportion. More
        finds better supports and takes proportionally longer.
    entering : int, default=64
        Variables considered for a swap, those with the largest gains when added alone. More finds better swaps at a
        higher cost per step; proofs always consider all. At least 1.
    tried : int, default=64
        Moves evaluated per step if their ranks only bound their gains, and at most 12 of them if ranks are heuristic.
        More gives better local optima and takes longer.
    proved : int, default=3000
        Moves evaluated one by one to prove that none improves the answer. More proves more answers swap-optimal.
    memory : int, default=268435456
        Bytes for rows of the Gram matrix or Hessian. If k rows exceed it, columns are read on demand, which takes
        longer.
    restarts : int, default=4
        Random restarts of a search on second-order models, twice as many if the data are small. More finds better
        supports and takes proportionally longer.
    returns : int, default=8
        Perturbations in a row that may fail (reach a known or infeasible support) before a search ends. More searches
        longer near the best support.
    kick : tuple of float, default=(0.25, 0.5)
        Least and largest share of the support that a perturbation removes. Large shares explore, small ones refine.
    clear : float, default=10.0
        End the search if each variable of the support is worth this many times what any other would gain. Less ends
        earlier on easy problems. Above 0.
    walks : int, default=16
        Smallest k for which tabu walks follow a descent. Walks take longer and pay off if k is large.
    patience : float, default=4.0
        Steps without improvement after which a walk ends, in multiples of k. More finds better supports and takes
        longer.
    depth : float, default=0.25
        How far below and above k a search goes to escape a local optimum, as a share of k, but at least 3. More takes
        longer.
    relaxed : int, default=500
        Largest number of variables for which the perspective relaxation suggests supports to start from. Its cost grows
        with the cube.
    drawn : int, default=8
        Random supports to start from, or three times as many that the relaxation suggests. More takes longer and
        explores further.
    large : int, default=524288
        Entries of the data from which losses that are not quadratic are searched on second-order models. More evaluates
        the loss itself more often, which takes longer and gives slightly better answers.

    Raises
    ------
    ValueError, TypeError
        If a number is negative or 0 where it must be positive, a count is not an integer, or `kick` is not (least,
        most).

    Examples
    --------
    >>> import numpy as np, ksparse as ks
    >>> thorough = ks.SearchSettings(changes=5_000, returns=20)
    >>> ks.minimize(ks.LeastSquares(np.eye(3), [3.0, -2.0, 1.0]), 2, settings=thorough).x
    array([ 3., -2.,  0.])
    """

    enumerated: int = 2_000
    changes: int = 1_300
    entering: int = 64
    tried: int = 64
    proved: int = 3_000
    memory: int = 2**28
    restarts: int = 4
    returns: int = 8
    kick: tuple[float, float] = (0.25, 0.5)
    clear: float = 10.0
    walks: int = 16
    patience: float = 4.0
    depth: float = 0.25
    relaxed: int = 500
    drawn: int = 8
    large: int = 2**19

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = f"settings.{field.name}", getattr(self, field.name)
            if field.name == "kick":
                if not isinstance(value, tuple) or len(value) != 2:
                    raise TypeError(f"{name} must be a tuple of 2 numbers, got {value!r}")
                for number in value:
                    check_number(number, name, at_least=0)
                if value[0] > value[1]:
                    raise ValueError(f"{name} must be (least, most), got {value}")
            elif field.type == "int":
                check_integer(value, name, int(field.name == "entering"))
            elif field.name == "clear":
                check_number(value, name, above=0)
            else:
                check_number(value, name, at_least=0)


DEFAULTS = SearchSettings()
