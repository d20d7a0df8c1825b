"""Formulas of numbers that are not known yet: as a device would work them out, and as often as one likes."""

import math
import operator

import numpy as np
import pytest

from ksparse.base import formulas
from ksparse.base.formulas import Formula, Recipe, worked_out
from ksparse.base.norms import Norm, taken


class Unknown:
    """A number, as formulas see one."""

    def __init__(self, made=None):
        self.made = made


def test_a_recipe_is_the_formula_again_and_again():
    a, b = Unknown(), Unknown()
    total = Unknown(Formula(operator.add, (a, b)))
    ratio = Unknown(Formula(operator.truediv, (total, 4.0)))
    both = Unknown(Formula(operator.mul, (ratio, total)))
    recipe = Recipe([both, b, 7.0, ratio, Unknown(Formula(formulas.larger, (b, 1.0)))], [a, b])
    for x, y in ((1.0, 2.0), (3.0, -5.0), (0.5, 0.25)):
        assert recipe([x, y]) == [(x + y) / 4.0 * (x + y), y, 7.0, (x + y) / 4.0, max(y, 1.0)]


def test_a_recipe_with_errors_goes_on():
    a = Unknown()
    half, over = Unknown(Formula(operator.truediv, (a, 2.0))), Unknown(Formula(operator.truediv, (1.0, a)))
    recipe = Recipe([half, over, Unknown(Formula(operator.neg, (over,)))], [a])
    assert recipe([0.0]) == [0.0, math.inf, -math.inf]
    assert recipe([2.0]) == [1.0, 0.5, -0.5]


def test_sources_are_met_once():
    a, b = Unknown(), Unknown()
    c = Unknown(Formula(operator.add, (a, Unknown(Formula(operator.mul, (a, b))))))
    assert formulas.sources([c, a, 2.0], lambda one: isinstance(one, Unknown)) == [a, b]


HAND_CALCULATED = [
    (operator.truediv, (1.0, 0.0), math.inf),
    (operator.truediv, (0.0, 0.0), math.nan),
    (operator.pow, (1e300, 2.0), math.inf),
    (formulas.root, (-1.0,), math.nan),
    (formulas.larger, (math.nan, 1.0), math.nan),
    (formulas.larger, (1.0, math.nan), math.nan),
    (formulas.smaller, (math.nan, 1.0), math.nan),
    (formulas.smaller, (1.0, math.nan), math.nan),
    (formulas.smaller, (1.0, -2.0), -2.0),
]


@pytest.mark.parametrize(("act", "values", "expected"), HAND_CALCULATED)
def test_worked_out_as_by_a_device(act, values, expected):
    np.testing.assert_equal(worked_out(act, *values), expected)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(("act", "values", "expected"), HAND_CALCULATED)
def test_a_device_works_it_out_so(act, values, expected):
    import torch

    there = act(*(torch.tensor(value, dtype=torch.float64) for value in values))
    np.testing.assert_equal(float(there), expected)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_at_once(dtype, rng):
    import torch

    vectors = [torch.tensor(1e25 * rng.standard_normal(n), dtype=getattr(torch, dtype)) for n in (3, 50, 7, 1)]
    norms = [Norm(order, x) for x in vectors for order in (1.0, 2.0, math.inf)]
    found = taken(norms)
    assert all(one.dtype == torch.float64 for one in found)
    for norm, value in zip(norms, found, strict=True):
        assert float(value) == pytest.approx(np.linalg.norm(norm.x.double().numpy(), norm.order), rel=1e-12)
