"""Load a page in a real browser: console messages, width, number of visible images."""

import html
import re
import shutil
import subprocess

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr"
)
PROBE = """<!DOCTYPE html><html><head><title>not loaded</title><link rel="icon" href="data:,"></head><body>
<iframe id="page" style="width:{width}px;height:800px" srcdoc="{content}"></iframe>
<script>page.onload = () => {{ const d = page.contentDocument, root = d.documentElement;
const shown = [...d.images].filter(i => i.complete && i.naturalWidth > 100);
const drawn = [...d.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 100);
const seen = `images ${{shown.length}} of ${{d.images.length}}, drawings ${{drawn.length}}`;
document.title = `wide ${{root.scrollWidth}} of ${{root.clientWidth}}, ${{seen}}`; }}</script></body></html>"""


def find_browser():
    names = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("needs Chromium or Chrome")
    return found


def look_at(browser, page, width, folder):
    """Return (loaded images, images, drawn SVGs) of a page; check that it fits the screen and logs nothing."""
    probe = folder / "probe.html"
    probe.write_text(PROBE.format(width=width, content=html.escape(page)))
    command = [browser, *FLAGS.split(), f"--user-data-dir={folder / 'profile'}", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr
    found = re.search(r"<title>wide (\d+) of (\d+), images (\d+) of (\d+), drawings (\d+)", done.stdout)
    wide, room, shown, images, drawings = map(int, found.groups())
    assert wide <= room
    return shown, images, drawings
