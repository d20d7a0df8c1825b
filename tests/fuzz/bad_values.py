"""Values that an argument of each kind must refuse."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

NAN, INF = float("nan"), float("inf")


def spoiled(array, value):
    array = np.array(array, dtype=float)
    array.flat[0] = value
    return array


def bad_matrices(M):
    """Return values that are not valid as a data matrix."""
    return {
        "NaN": spoiled(M, NAN), "inf": spoiled(M, INF), "-inf": spoiled(M, -INF), "object": M.astype(object),
        "complex": M.astype(complex), "float16": M.astype(np.float16), "text": M.astype(str),
        "masked": np.ma.masked_array(M, M == M.flat[0]), "vector": M[0], "three axes": M[None], "no rows": M[:0],
        "no columns": M[:, :0], "number": 3.0, "None": None, "word": "A", "ragged": [[1.0], [1.0, 2.0]],
        "sparse NaN": scipy.sparse.csr_array(spoiled(M, NAN)), "sparse inf": scipy.sparse.csc_array(spoiled(M, INF)),
        "sparse complex": scipy.sparse.csr_array(M.astype(complex)), "sparse empty": scipy.sparse.csr_array((0, 3)),
        "complex operator": aslinearoperator(M.astype(complex)), "dates": np.full(M.shape, np.datetime64("2020-01-01")),
        "dict": {"a": 1}, "list of None": [[None] * M.shape[1]] * M.shape[0],
        "structured": np.zeros(M.shape, dtype=[("a", float)]), "function": np.sin,
    }  # fmt: skip


def bad_vectors(v):
    """Return values that are not valid as a vector."""
    v = np.asarray(v, dtype=float)
    return {
        "NaN": spoiled(v, NAN), "inf": spoiled(v, INF), "object": v.astype(object), "complex": v.astype(complex),
        "text": v.astype(str), "float16": v.astype(np.float16), "masked": np.ma.masked_array(v, v == v[0]),
        "too long": np.append(v, 1.0), "too short": v[:-1], "matrix": v[:, None], "empty": v[:0], "word": "b",
        "sparse": scipy.sparse.csr_array(v[None]), "dict": {"a": 1}, "list of None": [None] * len(v),
        "ragged": [[1.0], [1.0, 2.0]], "dates": np.full(len(v), np.datetime64("2020-01-01")),
    }  # fmt: skip


def bad_numbers(least=None, strict=False, infinite=False):
    """Return values that are not valid as a number."""
    bad = {
        "NaN": NAN,
        "word": "1",
        "complex": 1j,
        "None": None,
        "list": [1.0],
        "bool": True,
        "object": object(),
        "array": np.ones(2),
    }
    if not infinite:
        bad["inf"] = INF
    if least is not None:
        bad["below"] = least - 1.0
    if strict:
        bad["at the limit"] = least
    return bad


def bad_integers(low, high=None):
    """Return values that are not valid as an integer."""
    bad = {
        "NaN": NAN,
        "float": low + 0.5,
        "whole float": float(low),
        "word": "1",
        "None": None,
        "bool": True,
        "list": [low],
        "below": low - 1,
    }
    return bad if high is None else bad | {"above": high + 1}


def without(bad, *names):
    return {name: value for name, value in bad.items() if name not in names}
