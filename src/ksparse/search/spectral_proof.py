"""Whether no exchange improves a sparse principal component.

After dropping j and taking i the variance is at most the largest eigenvalue of [[λ_max(S∖j), ‖V_{i,S∖j}‖], [·, V_ii]]; where that is not
above the present value for any pair, or every other pair has been tried, the support is swap-optimal, proved.
"""

from __future__ import annotations

import numpy as np

from ksparse.numerics.bound import EPS
from ksparse.numerics.eigen import leading_eigenvector
from ksparse.search.candidate import Candidate
from ksparse.search.neighbourhoods.rayleigh import larger_eigenvalue
from ksparse.search.problem import SupportProblem
from ksparse.util.arrays import Vector


def prove_spectral(problem: SupportProblem, at: Candidate) -> bool:
    """Whether no exchange can improve: by the bound from above, and by trying those it does not exclude."""
    assert problem.model is not None
    inactive = problem.inactive(at)
    if (at.support.size < problem.k and inactive.size) or problem.rules.grouped:
        return False
    if not at.x.any():
        return not ((-0.5 * problem.model.diagonal)[problem.allowed] > 0).any()
    target = at.value - problem.claim_tol(at.value)
    if problem.lower_bound(at.support) < target:
        return False
    V, diagonal = -0.5 * problem.model.rows(at.support), -0.5 * problem.model.diagonal[inactive]
    scale = float(np.abs(V).max())  # squares may overflow
    squares = (V[:, inactive] / scale) ** 2
    all_squares = squares.sum(axis=0)
    present, blur = (
        (problem.model.constant - target) / float(at.x @ at.x),
        at.support.size * (8.0 * EPS + problem.model.noise.entry_error) * scale,
    )
    spent = 0
    for j in np.flatnonzero(~np.isin(at.support, problem.forced)):
        others = np.delete(np.arange(at.support.size), j)
        without = _not_above(V[np.ix_(others, at.support[others])], at.x[others], blur) if others.size else 0.0
        coupling = scale * np.sqrt(np.maximum(all_squares - squares[j], 0.0)) + blur
        bound = larger_eigenvalue(np.full(inactive.size, without), coupling, diagonal) + blur
        for i in np.flatnonzero(~(bound <= present)):
            if not problem.allows(np.append(at.support[others], inactive[i])):
                continue
            spent += 1
            if (
                3 * spent > 2 * problem.settings.proved
                or problem.expired
                or problem.lower_bound(np.append(at.support[others], inactive[i])) < target
            ):
                return False
    return True


def _not_above(V: Vector, near: Vector, blur: float) -> float:
    """A number that λ_max(V) is not above, close to it: power iteration guesses it, a Cholesky factorisation of its distance proves it."""
    guess = leading_eigenvector(V, near)[0] * (1.0 + 1e-12) + blur
    try:
        np.linalg.cholesky(guess * np.eye(len(V)) - V)
    except np.linalg.LinAlgError:
        return float(np.linalg.eigvalsh(V)[-1]) + blur
    return guess + blur
