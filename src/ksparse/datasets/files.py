"""Real data sets from local files, in the folder named by the environment variable KSPARSE_DATA.

A function raises `MissingDataError` if its file is missing, with the source of the file in the message, or invalid.
"""

from __future__ import annotations

import csv
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ksparse.datasets.synthetic import Assets
from ksparse.util.checks import check_choice, check_integer

FOLDER = "KSPARSE_DATA"
SP500_IN_SAMPLE = 212  # weeks
Arrays = dict[str, np.ndarray[Any, Any]]


class MissingDataError(FileNotFoundError):
    """A data file is invalid, or missing from the folder named by the environment variable KSPARSE_DATA.

    If it is missing, the message names its source.

    Examples
    --------
    >>> import ksparse as ks
    >>> issubclass(ks.datasets.MissingDataError, FileNotFoundError)
    True
    """


@dataclass(frozen=True)
class DataFile:
    """Content and source of a data file."""

    file: str
    arrays: tuple[str, ...]
    what: str
    source: str


FILES: dict[str, DataFile] = {}
with Path(__file__).with_name("files.csv").open(encoding="utf-8", newline="") as _stream:
    for _name, _file, _arrays, *_texts in list(csv.reader(_stream))[1:]:  # below the headings
        FILES[_name] = DataFile(_file, tuple(_arrays.split()), *_texts)


def read(name: str) -> Arrays:
    """Return the arrays of a file of `FILES`."""
    check_choice(name, "name", FILES)
    entry, folder = FILES[name], os.environ.get(FOLDER)
    if not folder or not (Path(folder) / entry.file).is_file():
        place = f"the folder named by the environment variable {FOLDER} ({folder or 'not set'})"
        advice = f"get them from {entry.source}, and save them there with numpy.savez."
        raise MissingDataError(f"{entry.file} is not in {place}. It holds {entry.what}; {advice}")
    try:
        with np.load(Path(folder) / entry.file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        why = f"cannot be read as an NPZ file ({type(error).__name__}): save it again"
        raise MissingDataError(f"{entry.file} in {folder} {why}") from error
    lacking = [key for key in entry.arrays if key not in arrays]
    if lacking:
        raise MissingDataError(f"{entry.file} must hold {', '.join(entry.arrays)}; {', '.join(lacking)} is not in it")
    return arrays


def _table(name: str, *, classes: bool = False) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    arrays = read(name)
    return arrays["X"].astype(float), arrays["y"] if classes else arrays["y"].astype(float)


def colon() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the expression of 2000 genes in 62 tissues, and the classes: the data of Table 3.

    Returns
    -------
    tuple of ndarray and ndarray
        The data and the classes.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.colon()[0].shape  # doctest: +SKIP
    (62, 2000)
    """
    return _table("colon", classes=True)


def leukemia() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the expression of 7129 genes in 72 samples, and the classes.

    Returns
    -------
    tuple of ndarray and ndarray
        The data and the classes.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.leukemia()[0].shape  # doctest: +SKIP
    (72, 7129)
    """
    return _table("leukemia", classes=True)


def riboflavin() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the expression of 4088 genes in 71 cultures, and their riboflavin production (log).

    Returns
    -------
    tuple of ndarray and ndarray
        The data and the target.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.riboflavin()[0].shape  # doctest: +SKIP
    (71, 4088)
    """
    return _table("riboflavin")


def communities() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return 100 characteristics of 1993 communities, and the rate of violent crimes.

    Returns
    -------
    tuple of ndarray and ndarray
        The data and the target.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.communities()[0].shape  # doctest: +SKIP
    (1993, 100)
    """
    return _table("communities")


def unmixing() -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return two unmixing problems: 240 spectra of minerals, and the nonnegative sparse abundances in each pixel.

    Returns
    -------
    dict from str to tuple of ndarray and ndarray
        The spectra (columns) and the abundances (minerals in rows, pixels in columns) of each scene.

    Examples
    --------
    >>> import ksparse as ks
    >>> sorted(ks.datasets.unmixing())  # doctest: +SKIP
    ['dc1', 'dc2']
    """
    arrays = read("unmixing")
    A, scenes = arrays["A"].astype(float), {}
    for scene in ("dc1", "dc2"):
        X = np.zeros((A.shape[1], arrays[f"{scene}_X"].shape[1]))
        X[arrays[f"{scene}_rows"]] = arrays[f"{scene}_X"]
        scenes[scene] = (A, X)
    return scenes


def tokyo() -> Assets:
    """Return 1338 Tokyo stocks on 2148 days, Nov 2013 – Sep 2022: exchange and shape of Table 4, another period.

    Returns
    -------
    Assets
        Returns, means, covariances and codes.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.tokyo().returns.shape  # doctest: +SKIP
    (2148, 1338)
    """
    arrays = read("tokyo")
    return Assets.from_returns(arrays["returns"].astype(float), [str(code) for code in arrays["codes"]])


def sp500() -> Assets:
    """Return the weekly log returns of 476 stocks of the S&P 500 in the 212 in-sample weeks of the source.

    Returns
    -------
    Assets
        Returns, means, covariances and names.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.sp500().returns.shape  # doctest: +SKIP
    (212, 476)
    """
    prices = read("sp500")["prices"].astype(float)
    returns = np.diff(np.log(prices), axis=0)[:SP500_IN_SAMPLE]
    return Assets.from_returns(returns, [f"asset {j}" for j in range(1, prices.shape[1] + 1)])


def orlib_portfolio(i: int) -> Assets:
    """Return portfolio set i = 1…5 of OR-Library: 31, 85, 89, 98 or 225 assets.

    Parameters
    ----------
    i : int
        Index of the data set, 1 to 5.

    Returns
    -------
    Assets
        Means, covariances and names.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.orlib_portfolio(1).V.shape  # doctest: +SKIP
    (31, 31)
    """
    arrays = read(f"port{check_integer(i, 'i', 1, 5)}")
    sd = arrays["sd"].astype(float)
    names = [f"asset {j}" for j in range(1, len(sd) + 1)]
    return Assets(arrays["corr"] * np.outer(sd, sd), arrays["mu"].astype(float), names)


@dataclass(frozen=True)
class BuyIns:
    """Portfolio problem ``min xᵀQx`` s.t. ``Σx = 1``, ``μᵀx ≥ ρ``, each xᵢ either 0 or between lowerᵢ and upperᵢ.

    Parameters
    ----------
    Q : ndarray
        Covariances.
    mu : ndarray
        Means.
    rho : float
        Minimum mean return.
    lower : ndarray
        Minimum positions if held.
    upper : ndarray
        Maximum positions.
    best : float
        Best known value without a limit on the number of assets.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.buy_ins("200_a").rho > 0  # doctest: +SKIP
    True
    """

    Q: np.ndarray[Any, Any]
    mu: np.ndarray[Any, Any]
    rho: float
    lower: np.ndarray[Any, Any]
    upper: np.ndarray[Any, Any]
    best: float


def buy_ins(name: str) -> BuyIns:
    """Return a mean-variance instance of Frangioni and Gentile.

    Parameters
    ----------
    name : {"200_a", "200_b", "200_c", "300_a", "300_b", "400_a"}
        Name of the instance: number of assets and letter.

    Returns
    -------
    BuyIns
        The instance.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.buy_ins("200_a").Q.shape  # doctest: +SKIP
    (200, 200)
    """
    check_choice(name, "name", [key.removeprefix("pard") for key in FILES if key.startswith("pard")])
    arrays = read(f"pard{name}")
    Q, mu, lower, upper = (arrays[key].astype(float) for key in ("Q", "mu", "lower", "upper"))
    return BuyIns(Q, mu, float(arrays["rho"]), lower, upper, float(arrays["best_upper"]))


def orlib_index(i: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return index-tracking set i = 1, 5 or 6 of OR-Library: weekly levels of the index, and prices of its stocks.

    Parameters
    ----------
    i : int
        Index of the data set.

    Returns
    -------
    tuple of ndarray and ndarray
        The index and the prices.

    Examples
    --------
    >>> import ksparse as ks
    >>> ks.datasets.orlib_index(1)[1].shape[1]  # doctest: +SKIP
    31
    """
    if i not in (1, 5, 6):
        raise ValueError(f"i must be 1, 5 or 6, got {i!r}")
    arrays = read(f"indtrack{i}")
    return arrays["index"].astype(float), arrays["prices"].astype(float)
