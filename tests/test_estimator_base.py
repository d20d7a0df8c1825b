"""Texts of parameters are written once and appear in every docstring that names them."""

import inspect
import re
import subprocess
import sys

import pytest

import ksparse as ks
from ksparse.estimator_base import SparseEstimator, fill_docstrings

TABLE = """
alpha : float, default=0.0
    Ridge.
effort : int
    Own text,
    in two lines.
"""


class Base:
    """A base class.

    Parameters
    ----------
    effort : float
        Hidden by the text of the decorator.
    verbose : int, default=0
        Level.

        Second paragraph.
    """


@fill_docstrings(TABLE)
class Model(Base):
    """A model.

    Parameters
    ----------
    k : {"a", "b"}
        Own.
    {alpha, effort}
    {verbose}
    """

    def fit(self):
        """Fit.

        {alpha}
        """


def test_a_docstring_holds_the_shared_entries_that_it_names():
    shown = inspect.getdoc(Model)
    assert (
        'k : {"a", "b"}\n    Own.\nalpha : float, default=0.0\n    Ridge.\n'
        "effort : int\n    Own text,\n    in two lines.\n" in shown
    )
    assert shown.endswith("verbose : int, default=0\n    Level.\n\n    Second paragraph.")
    assert inspect.getdoc(Model.fit) == "Fit.\n\nalpha : float, default=0.0\n    Ridge."


def test_an_unknown_name_is_refused():
    with pytest.raises(KeyError, match="beta"):

        @fill_docstrings(TABLE)
        def f(beta):
            """Return beta.

            {beta}
            """


@pytest.mark.parametrize("name", ks.estimators.__all__)
def test_no_name_in_braces_is_left(name):
    piece = getattr(ks.estimators, name)
    for part in [piece, *(part for part in vars(piece).values() if inspect.isfunction(part))]:
        assert not re.search(r"^ *\{[\w, ]+\}$", part.__doc__ or "", re.MULTILINE)


def test_estimators_work_without_docstrings():
    code = (
        "import ksparse as ks; model = ks.SparseRegressor(k=3); "
        "print('Parameters' in model.__doc__, model.get_params()['k'])"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "3"]


def test_help_shows_the_text_of_every_parameter():
    shown = inspect.getdoc(ks.SparseRegressorCV)
    for name in ks.SparseRegressorCV().get_params():
        assert re.search(rf"^{name} : .+\n    \S", shown, re.MULTILINE), name
    assert "effort : int or None" in inspect.getdoc(SparseEstimator)
