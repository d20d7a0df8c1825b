"""The report in a real browser: no console errors, pictures show, nothing sticks out on a phone."""

import html
import re
import shutil
import subprocess

import pytest

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from ksparse.experiments import pitprops, table5
from ksparse.experiments.environment import environment
from ksparse.experiments.figures import draw, to_png
from ksparse.experiments.report import Made
from ksparse.experiments.report import html as report_html
from ksparse.experiments.run import run

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --enable-logging=stderr"
)
PROBE = """<!DOCTYPE html><html><head><title>not loaded</title><link rel="icon" href="data:,"></head><body>
<iframe id="page" style="width:{width}px;height:800px" srcdoc="{content}"></iframe>
<script>page.onload = () => {{ const d = page.contentDocument, shown = [...d.images].filter(i => i.complete && i.naturalWidth > 100);
const root = d.documentElement;
document.title = `wide ${{root.scrollWidth}} of ${{root.clientWidth}}, images ${{shown.length}} of ${{d.images.length}}`; }}
</script></body></html>"""


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if found is None:
        pytest.skip("needs Chromium or Chrome")
    return found


@pytest.fixture(scope="module")
def report():
    methods = ("l2-APDCA", "auto")
    rows_of = {"pitprops": run(pitprops.jobs(starts=3, methods=methods)), "table5": run(table5.jobs(sizes=(1,), methods=methods))}
    pictures = {name: to_png(draw(name, rows)) for name, rows in rows_of.items()}
    return report_html(rows_of, pictures, Made("ksparse reproduce pitprops table5", environment()))


@pytest.mark.parametrize("width", [1200, 360], ids=["desk", "phone"])
def test_the_report_shows_in_a_browser(browser, report, width, tmp_path):
    page = tmp_path / "probe.html"
    page.write_text(PROBE.format(width=width, content=html.escape(report)))
    command = [browser, *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr
    wide, room, shown, images = map(int, re.search(r"<title>wide (\d+) of (\d+), images (\d+) of (\d+)", done.stdout).groups())
    assert wide <= room
    assert shown == images == 2
