"""Enumeration of all supports, to check the search."""

import itertools

import numpy as np

import ksparse as ks
from ksparse.search.polish import polish


def enumerated(loss, C, n, k):
    """Return the best value over all supports of size k, each re-solved."""
    best = np.inf
    for support in itertools.combinations(range(n), k):
        try:
            best = min(best, polish(loss, C, np.array(support), np.full(k, 0.1)).value)
        except ks.InfeasibleError:
            continue
    return best
