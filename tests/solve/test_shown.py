"""Display in a notebook and a terminal: values by name, the status in words, well-formed charts, escaped text."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import catalogue
import ksparse as ks

NASTY = '<script>alert("x")</script> & Co'


def drawings(text):
    """Return the pictures of a page, parsed."""
    return [ET.fromstring(found) for found in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def widths(picture):
    return [float(bar.get("width")) for bar in picture.iter("{http://www.w3.org/2000/svg}rect")]


@pytest.fixture
def result(rng):
    A = rng.standard_normal((60, 20))
    return ks.minimize(ks.LeastSquares(A, A[:, :3] @ [1.0, -2.0, 4.0] + 0.1 * rng.standard_normal(60)), 3)


def test_a_result_shows_x_by_name_and_its_status_in_words(result):
    assert list(result.nonzeros()) == ["x[2]", "x[1]", "x[0]"]
    named = result.named([NASTY, *(f"v{j}" for j in range(1, 20))])
    assert list(named.nonzeros()) == ["v2", "v1", NASTY]
    assert list(named.nonzeros(1)) == ["v2"]
    assert named.nonzeros()["v1"] == result.x[1]
    assert "v2 = " in repr(named)
    assert "OPTIMAL: proved optimal" in repr(named)
    page = named._repr_html_()
    assert "proved optimal" in page
    assert "<script" not in page
    picture = drawings(page)[0]
    sizes = np.abs(list(named.nonzeros().values()))
    np.testing.assert_allclose(np.array(widths(picture)) / widths(picture)[0], sizes / sizes[0], atol=0.01)
    with pytest.raises(ValueError, match="names must hold one name per variable, 20, got 1"):
        result.named(["a"])


def test_the_gap_is_a_bar(rng):
    found = ks.minimize(
        ks.LeastSquares(rng.standard_normal((40, 30)), rng.standard_normal(40)), 8, gap=1e-9, max_nodes=3
    )
    assert 0 < found.gap < 1
    bar = drawings(found._repr_html_())[-1]
    whole, part = widths(bar)
    assert part / whole == pytest.approx(found.gap, abs=1e-3)


def test_answers_without_nonzeros_or_numbers_show_too(rng):
    nothing = ks.minimize_penalized(ks.LeastSquares(np.eye(3), np.full(3, 0.1)), ks.L1(1.0))
    assert nothing.support.size == 0
    assert "        x: 0" in repr(nothing)
    assert drawings(nothing._repr_html_()) == []
    many = ks.minimize(ks.LeastSquares(np.eye(40), np.arange(1.0, 41.0)), 30)
    assert "and 18 smaller ones" in many._repr_html_()
    assert repr(many).endswith(", ...")


def test_paths_and_lists_of_supports(rng):
    loss = ks.LeastSquares(rng.standard_normal((30, 8)), rng.standard_normal(30))
    path = ks.k_path(loss, [1, 2, 4])
    assert len(repr(path).splitlines()) == 4
    (line,) = drawings(path._repr_html_())
    points = line.find("{http://www.w3.org/2000/svg}polyline").get("points").split()
    assert len(points) == 3
    assert path._repr_html_().count("<tr>") == 4
    found = ks.near_optimal(loss, 2, within=0.2)
    (bars,) = drawings(found._repr_html_())
    assert len(widths(bars)) == min(12, np.count_nonzero(found.frequencies))


@pytest.mark.parametrize("name", [*catalogue.LOSSES, *catalogue.SETS])
def test_every_loss_and_set_says_what_it_is_in_a_line(name, rng):
    piece = catalogue.LOSSES[name](rng, lambda A: A) if name in catalogue.LOSSES else catalogue.SETS[name](6)
    assert type(piece).__name__ in repr(piece)
    assert "\n" not in repr(piece)
    assert len(repr(piece)) < 100
    page = piece._repr_html_()
    assert ET.fromstring(page).tag == "table"
