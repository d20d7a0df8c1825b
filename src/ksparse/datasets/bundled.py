"""Small real data that come with scikit-learn: no file to fetch."""

from __future__ import annotations

from typing import Any

import numpy as np

Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[str]]


def diabetes(quadratic: bool = False) -> Table:
    """Progression of diabetes in 442 patients by 10 measurements (Efron et al. 2004).

    Parameters
    ----------
    quadratic : bool, default=False
        With their squares and products, 64 in all.

    Returns
    -------
    tuple of ndarray, ndarray and list of str
        The table, the target, the names of the columns.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> X.shape, names[:3]
    ((442, 10), ['age', 'sex', 'bmi'])
    """
    from sklearn.datasets import load_diabetes  # here and below: slow to import, and only for those who ask

    data = load_diabetes()
    X, names = np.asarray(data.data, dtype=float), [str(name) for name in data.feature_names]
    if quadratic:
        pairs = [(i, j) for i in range(10) for j in range(i, 10) if not (i == j and names[i] == "sex")]  # sex² is sex again
        X = np.hstack([X, np.column_stack([X[:, i] * X[:, j] for i, j in pairs])])
        names += [f"{names[i]}^2" if i == j else f"{names[i]}:{names[j]}" for i, j in pairs]
    return X, np.asarray(data.target, dtype=float), names


def breast_cancer() -> Table:
    """Wisconsin breast cancer: 569 tumours, 30 measurements, 1 for benign.

    Returns
    -------
    tuple of ndarray, ndarray and list of str
        The table, the classes, the names of the columns.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.breast_cancer()[0].shape
    (569, 30)
    """
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return np.asarray(data.data, dtype=float), np.asarray(data.target), [str(name) for name in data.feature_names]


def digits() -> Table:
    """1797 handwritten digits by the grey levels of the 61 pixels of 64 that are not always empty.

    Returns
    -------
    tuple of ndarray, ndarray and list of str
        The table, which digit each is, the names of the pixels.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.digits()[0].shape
    (1797, 61)
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    X = np.asarray(data.data, dtype=float)
    used = np.ptp(X, axis=0) > 0
    return X[:, used], np.asarray(data.target), [name for name, keep in zip(data.feature_names, used, strict=True) if keep]
