"""The report in a real browser: no console errors, visible images, no overflow on a phone."""

import pytest

from browser import find_browser, look_at

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from ksparse.experiments import pitprops, table5
from ksparse.experiments.report import Made, draw, to_png
from ksparse.experiments.report import html as report_html
from ksparse.experiments.run import environment, run


@pytest.fixture(scope="module")
def browser():
    return find_browser()


@pytest.fixture(scope="module")
def report():
    methods = ("l2-APDCA", "auto")
    rows_of = {
        "pitprops": run(pitprops.jobs(starts=3, methods=methods)),
        "table5": run(table5.jobs(sizes=(1,), methods=methods)),
    }
    pictures = {name: to_png(draw(name, rows)) for name, rows in rows_of.items()}
    return report_html(rows_of, pictures, Made("ksparse reproduce pitprops table5", environment()))


@pytest.mark.parametrize("width", [1200, 360], ids=["desk", "phone"])
def test_the_report_shows_in_a_browser(browser, report, width, tmp_path):
    shown, images, _ = look_at(browser, report, width, tmp_path)
    assert shown == images == 2
