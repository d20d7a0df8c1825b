"""Small real data sets that need no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[str]]


def _load(name: str) -> Table:
    from sklearn import datasets  # here, since it is slow to import

    data = getattr(datasets, f"load_{name}")()
    return np.asarray(data.data, dtype=float), np.asarray(data.target), [str(name) for name in data.feature_names]


def diabetes(quadratic: bool = False) -> Table:
    """Return the diabetes data: disease progression and 10 measurements of 442 patients (Efron et al. 2004).

    Parameters
    ----------
    quadratic : bool, default=False
        Whether to add squares and products, 64 columns in total.

    Returns
    -------
    tuple of ndarray, ndarray and list of str
        The data, the target and the column names.

    Examples
    --------
    >>> import ksparse as ks
    >>> X, y, names = ks.datasets.diabetes()
    >>> X.shape, names[:3]
    ((442, 10), ['age', 'sex', 'bmi'])
    """
    X, y, names = _load("diabetes")
    if quadratic:
        binary = names.index("sex")  # its square is itself up to a linear map
        pairs = [(i, j) for i in range(10) for j in range(i, 10) if (i, j) != (binary, binary)]
        X = np.hstack([X, np.column_stack([X[:, i] * X[:, j] for i, j in pairs])])
        names += [f"{names[i]}^2" if i == j else f"{names[i]}:{names[j]}" for i, j in pairs]
    return X, y.astype(float), names


def breast_cancer() -> Table:
    """Return the Wisconsin breast cancer data: 30 measurements of 569 tumours, 1 for benign.

    Returns
    -------
    tuple of ndarray, ndarray and list of str
        The data, the classes and the column names.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.breast_cancer()[0].shape
    (569, 30)
    """
    return _load("breast_cancer")


def digits() -> Table:
    """Return 1797 handwritten digits by the grey levels of 61 pixels (of 64; three are always empty).

    Returns
    -------
    tuple of ndarray, ndarray and list of str
        The data, the digits and the pixel names.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.digits()[0].shape
    (1797, 61)
    """
    X, y, names = _load("digits")
    used = np.ptp(X, axis=0) > 0
    return X[:, used], y, [name for name, keep in zip(names, used, strict=True) if keep]


def pit_props() -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return the correlations of 13 measurements on 180 pit props (Jeffers 1967), a standard test of sparse PCA.

    Returns
    -------
    tuple of ndarray and list of str
        The 13 × 13 matrix and the variable names.

    Examples
    --------
    >>> import ksparse as ks
    >>> R, names = ks.datasets.pit_props()
    >>> R.shape, names[0]
    ((13, 13), 'topdiam')
    """
    # J. N. R. Jeffers, "Two case studies in the application of principal component analysis", Applied Statistics 16
    rows = [line.split() for line in Path(__file__).with_name("pit_props.txt").read_text(encoding="utf-8").splitlines()]
    R = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        R[i, : i + 1] = R[: i + 1, i] = [float(number) for number in row[1:]]
    return R, [row[0] for row in rows]
