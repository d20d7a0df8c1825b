"""Rules as text: bounds by name, groups, parse_constraints."""

import numpy as np
import pytest

from ksparse.portfolio.rules import Universe, parse_constraints, portfolio_arguments

NAMES = ["AAPL", "MSFT", "BRK.B", "BF-B", "7203"]
ASSETS = Universe(5, NAMES)
SECTORS = {"tech": np.array([0, 1]), "Health Care": np.array([2, 4])}


@pytest.mark.parametrize(
    ("text", "row", "right"),
    [
        ("tech <= 0.3", [1, 1, 0, 0, 0], 0.3),
        ("AAPL + MSFT >= 0.1", [-1, -1, 0, 0, 0], -0.1),
        ("2*AAPL + 0.5 MSFT - BRK.B*3 <= 1e-1", [2, 0.5, -3, 0, 0], 0.1),
        ("BF-B - BRK.B <= 0.2", [0, 0, -1, 1, 0], 0.2),
        ("BF-B-BRK.B<=0.2", [0, 0, -1, 1, 0], 0.2),
        ("Health Care <= tech", [-1, -1, 1, 0, 1], 0.0),
        ("'Health Care' + 0.1 <= 2 * 'tech' + .3", [-2, -2, 1, 0, 1], 0.2),
        ("'7203' <= 0.1", [0, 0, 0, 0, 1], 0.1),
        ("-AAPL < -0.1", [-1, 0, 0, 0, 0], -0.1),
        ("0.3 >= tech", [1, 1, 0, 0, 0], 0.3),
    ],
)
def test_a_sentence_is_a_row(text, row, right):
    rows = parse_constraints(text, ASSETS, SECTORS)
    way = 1.0 if np.allclose(rows.G[0], row) else 2.0  # the same row, at its own scale
    np.testing.assert_allclose(rows.G[0], np.array(row) / way)
    np.testing.assert_allclose(rows.h, [right / way])
    assert not rows.f.size


def test_chains_and_equations():
    rows = parse_constraints(["0.1 <= tech <= 0.4", "AAPL == MSFT", "BRK.B = 0.05"], ASSETS, SECTORS)
    np.testing.assert_allclose(rows.G, [[-1, -1, 0, 0, 0], [1, 1, 0, 0, 0]])
    np.testing.assert_allclose(rows.h, [-0.1, 0.4])
    np.testing.assert_allclose(rows.E, [[1, -1, 0, 0, 0], [0, 0, 1, 0, 0]])
    np.testing.assert_allclose(rows.f, [0, 0.05])
    unnamed = parse_constraints("x0 + x2 <= 0.5", Universe(3), {})
    np.testing.assert_allclose(unnamed.G, [[1, 0, 1]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("oil <= 0.3", "'oil' in 'oil <= 0.3' is neither an asset nor a group"),
        ("AAPLE <= 0.3", "'AAPLE' in 'AAPLE <= 0.3' is neither"),
        ("AAPL + MSFT", "has no <=, >= or =="),
        ("AAPL <=", "has nothing on one side of <="),
        ("AAPL MSFT <= 1", r"lacks \+ or \* before 'MSFT'"),
        ("AAPL 2 <= 1", r"lacks \+ or \* before 2.0"),
        ("AAPL * MSFT <= 1", "multiplies 'AAPL' by 'MSFT'"),
        ("AAPL + <= 1", "ends where a name or a number is needed"),
        ("* AAPL <= 1", r"a \* with nothing before it"),
        ("2 * + AAPL <= 1", r"has a \+ after \*"),
        ("0.2 <= 0.1", "contains no asset"),
        (
            "7203 + AAPL >= 0.5",
            "'7203' in .* is a number and a name: put the name in quotes, or write the number otherwise, as in 7203.0",
        ),
        ("(AAPL) <= 1", r"'\(AAPL\)' in"),
    ],
)
def test_a_sentence_that_is_none_is_shown(text, words):
    with pytest.raises(ValueError, match=words):
        parse_constraints(text, ASSETS, SECTORS)


def test_names_that_could_mean_two_things():
    with pytest.raises(ValueError, match="a group 'AAPL' that is the name of an asset"):
        parse_constraints("AAPL <= 1", ASSETS, {"AAPL": np.array([0])})
    with pytest.raises(TypeError, match="linear_constraints must hold strings"):
        parse_constraints([3], ASSETS, {})


def test_numbers_by_name():
    np.testing.assert_array_equal(
        ASSETS.numbers({"MSFT": 0.2, 2: 0.1}, "max_weights", np.inf), [np.inf, 0.2, 0.1, np.inf, np.inf]
    )
    np.testing.assert_array_equal(ASSETS.numbers(0.2, "max_weights", np.inf), np.full(5, 0.2))
    np.testing.assert_array_equal(ASSETS.numbers(range(5), "max_weights", np.inf), range(5))
    for given, error, words in (
        ({"IBM": 1.0}, ValueError, "max_weights names 'IBM', which is not an asset"),
        ({9: 1.0}, ValueError, r"max_weights must name assets by 0\.\.4, got 9"),
        ([0.1, 0.2], ValueError, "max_weights must hold one number per asset, 5"),
        (["a"] * 5, TypeError, "max_weights must be a number, one per asset"),
        ([np.nan] * 5, ValueError, "max_weights must not hold NaN"),
    ):
        with pytest.raises(error, match=words):
            ASSETS.numbers(given, "max_weights", np.inf)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_turnover": 0.1}, "max_turnover needs previous_weights"),
        ({"group_floors": 0.1}, "group_floors requires groups"),
        (
            {"groups": ["a"] * 5},
            "groups has no effect without group_caps, group_floors, group_cardinalities or linear_constraints",
        ),
        ({"groups": ["a"] * 5, "group_floors": {"b": 0.1}}, "group_floors names 'b'"),
        ({"forced_in": ["IBM"]}, "forced_in names 'IBM'"),
        ({"forced_out": [True, False]}, "forced_out as a mask must have one entry per asset, 5"),
        ({"turnover_cost": {"AAPL": -1.0}, "previous_weights": {}}, "turnover_cost must be >= 0"),
        ({"previous_weights": {"AAPL": np.inf}}, "previous_weights must be finite"),
    ],
)
def test_mandates_that_cannot_be_read(options, words):
    with pytest.raises(ValueError, match=words):
        portfolio_arguments(ASSETS, **options)
