"""Check every page of the built site in Chromium at 1200 and 360 px: python docs/browse.py build/docs.

Needs playwright and a Chromium. No console message, no request that fails or leaves the disk, no link or anchor that
leads nowhere, no picture that does not load, nothing wider than the screen, and a search that finds something.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = (1200, 360)
THEME = "[PST]"  # how the theme begins its own notes: of the colours it chose, and where it scrolled to
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
LOOK = """() => {
  const root = document.documentElement, room = root.clientWidth;
  const wide = [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > room + 1 && e.getClientRects().length)
    .slice(0, 3).map(e => `${e.tagName.toLowerCase()}.${e.className}`);
  return {
    over: root.scrollWidth - room, wide,
    broken: [...document.images].filter(i => !(i.complete && i.naturalWidth > 0)).map(i => i.src),
    links: [...document.links].map(a => a.href), ids: [...document.querySelectorAll('[id]')].map(e => e.id),
  };
}"""


def main(folder: str) -> int:
    """Check every page and print the faults."""
    site = Path(folder).resolve()
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    if not pages:
        print(f"{site} holds no page: make docs")
        return 1
    wrong: list[str] = []
    links: dict[Path, set[str]] = {}
    ids: dict[Path, set[str]] = {}
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
        browser = playwright.chromium.launch(executable_path=found)
        for width in WIDTHS:
            for path, seen, told in looks(browser, pages, width):
                where = f"{path.relative_to(site)} at {width} px"
                wrong += [f"{where}: {line}" for line in told]
                wrong += [f"{where}: the picture {source} does not load" for source in seen["broken"]]
                if seen["over"] > 0:
                    wrong.append(f"{where}: {seen['over']} px wider than the screen: {', '.join(seen['wide'])}")
                links[path], ids[path] = set(seen["links"]), set(seen["ids"])
        wrong += search(browser, site)
        browser.close()
    wrong += [line for path, targets in links.items() for target in targets for line in lost(target, path, site, ids)]
    print("\n".join(wrong) if wrong else f"{len(pages)} pages at {' and '.join(map(str, WIDTHS))} px: nothing wrong")
    return bool(wrong)


def looks(browser: Browser, pages: list[Path], width: int) -> Iterator[tuple[Path, dict, list[str]]]:
    """Yield each page as the browser shows it, with its messages."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    told: list[str] = []
    listen(page, told)
    for path in pages:
        page.goto(path.as_uri(), wait_until="load")
        page.evaluate("() => document.querySelectorAll('img[loading=lazy]').forEach(i => i.loading = 'eager')")
        page.wait_for_function("[...document.images].every(i => i.complete)", timeout=10_000)
        yield path, page.evaluate(LOOK), told.copy()
        told.clear()
    page.close()


def listen(page: Page, told: list[str]) -> None:
    """Record errors while a page loads."""
    page.on(
        "console",
        lambda message: (
            None if message.text.startswith(THEME) else told.append(f"console {message.type}: {message.text}")
        ),
    )
    page.on("pageerror", lambda error: told.append(f"script error: {error}"))
    page.on("requestfailed", lambda request: told.append(f"failed request: {request.url}"))
    page.on(
        "request",
        lambda request: told.append(f"leaves the disk: {request.url}") if request.url.startswith("http") else None,
    )


def search(browser: Browser, site: Path) -> list[str]:
    """Return the faults of a search without a server."""
    page = browser.new_page()
    told: list[str] = []
    listen(page, told)
    page.goto(f"{(site / 'search.html').as_uri()}?q=portfolio")
    page.wait_for_selector("#search-results li", timeout=10_000)
    count = page.locator("#search-results li").count()
    return told + ([] if count >= 3 else [f"search: {count} pages on portfolio"])


def lost(target: str, path: Path, site: Path, ids: dict[Path, set[str]]) -> list[str]:
    """Return the fault of a link, if any, as a list."""
    parts = urlsplit(target)
    if parts.scheme != "file":
        return []
    file = Path(unquote(parts.path))
    where = f"{path.relative_to(site)}: the link {re.sub('^file://' + re.escape(str(site)) + '/', '', target)}"
    if not file.exists() or file.is_dir():
        return [f"{where} leads nowhere"]
    if parts.fragment and file in ids and unquote(parts.fragment) not in ids[file]:
        return [f"{where} leads to no place on its page"]
    return []


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["build/docs"]))
