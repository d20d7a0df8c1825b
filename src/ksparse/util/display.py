"""HTML reprs for notebooks: small tables and inline SVG charts, all text escaped, for light and dark pages."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

UP, DOWN = "#0072B2", "#D55E00"  # from the colour-blind safe palette of Okabe and Ito (2008)
ROW = 18  # height of a bar and its label
WIDE = 320  # width of a chart, in user units of the drawing


def page(title: str, body: str) -> str:
    """Return a self-contained HTML page."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><link rel="icon" href="data:,"><style>
{style}</style></head><body>
<h1>{escape(title)}</h1>
{body}
</body></html>
"""


def facts(rows: Mapping[str, str]) -> str:
    """Return a table of names and values."""
    start, middle = '<tr><th style="text-align:left;padding:1px 12px 1px 0">', '</th><td style="text-align:left">'
    cells = "".join(f"{start}{escape(name)}{middle}{escape(text)}</td></tr>" for name, text in rows.items())
    return f'<table style="margin:0 0 .5em">{cells}</table>'


def grid(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with column headings."""
    heads = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table style="margin:0 0 .5em"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def bars(values: Mapping[str, float], title: str) -> str:
    """Return horizontal bars with names and values, negative ones to the left of zero; "" if there are none."""
    if not values:
        return ""
    sizes = [value if math.isfinite(value) else 0.0 for value in values.values()]
    low, high = min(0.0, *sizes), max(0.0, *sizes)
    scale = 120.0 / ((high - low) or 1.0)
    zero = 110.0 - low * scale
    parts = []
    for place, ((name, value), size) in enumerate(zip(values.items(), sizes, strict=True)):
        y, left, width = place * ROW, zero + min(0.0, size) * scale, abs(size) * scale
        parts.append(f'<text x="104" y="{y + 13}" text-anchor="end">{escape(shortened(name))}</text>')
        box = f'x="{left:.1f}" y="{y + 3}" width="{max(width, 0.5):.1f}" height="{ROW - 6}"'
        parts.append(f'<rect {box} fill="{UP if size >= 0 else DOWN}"></rect>')
        parts.append(f'<text x="236" y="{y + 13}">{escape(f"{value:.5g}")}</text>')
    ends = f'x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{len(values) * ROW}"'
    parts.append(f'<line {ends} stroke="currentColor" stroke-width="0.5"></line>')
    return drawing(parts, len(values) * ROW, title)


def share(value: float, title: str) -> str:
    """Return a bar for a fraction between 0 and 1."""
    width = 200.0 * min(max(value, 0.0), 1.0)
    parts = [
        '<rect x="0" y="3" width="200" height="10" fill="none" stroke="currentColor" stroke-width="0.5"></rect>',
        f'<rect x="0" y="3" width="{width:.2f}" height="10" fill="{DOWN}"></rect>',
        f'<text x="208" y="13">{escape(title)}</text>',
    ]
    return drawing(parts, 18, title)


def curve(x: Sequence[float], y: Sequence[float], title: str) -> str:
    """Return a line through points, labelled with the largest and the smallest y."""
    low, high = min(y), max(y)
    across, up = (x[-1] - x[0]) or 1.0, (high - low) or 1.0
    places = ((20 + 200 * (a - x[0]) / across, 56 - 48 * (b - low) / up) for a, b in zip(x, y, strict=True))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    parts = [
        f'<polyline points="{points}" fill="none" stroke="{UP}" stroke-width="1.5"></polyline>',
        f'<text x="228" y="14">{escape(f"{high:.5g}")}</text>',
        f'<text x="228" y="60">{escape(f"{low:.5g}")}</text>',
    ]
    return drawing(parts, 66, title)


def drawing(parts: Iterable[str], height: float, title: str) -> str:
    """Return an SVG drawing with a title for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDE}" height="{height}" '
        f'viewBox="0 0 {WIDE} {height}" style="max-width:100%;font:11px sans-serif" fill="currentColor">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def shortened(name: str, most: int = 16) -> str:
    """Return a name, cut to fit next to its bar."""
    return name if len(name) <= most else name[: most - 1] + "…"


def docstring_summary(piece: object) -> dict[str, str]:
    """Return the first line of an object's class docstring, as a row of `facts`."""
    first = (type(piece).__doc__ or "").strip().partition("\n")[0].replace("``", "")
    return {"is": first} if first else {}


def fill_docstrings(*texts: str) -> Callable[[T], T]:
    """Return a decorator that replaces lines ``{name, …}`` in docstrings of a class or function by shared entries.

    An entry is numpydoc text in `texts` or in the docstring of a base class, and is known by the name that it begins
    with. The methods that a class defines are filled too. An unknown name raises KeyError on import.
    """

    def fill(piece: T) -> T:
        sources = [*texts, *(base.__doc__ or "" for base in getattr(piece, "__mro__", [])[1:])]
        entries: dict[str, str] = {}
        for source in sources:
            for entry in re.split(r"\n(?=\S)", inspect.cleandoc(source)):
                entries.setdefault(entry.partition(" : ")[0], entry)

        def filled(match: re.Match[str]) -> str:
            indent, names = match.groups()
            return "\n".join(indent + line for name in names.split(", ") for line in entries[name].strip().split("\n"))

        for part in [piece, *(part for part in vars(piece).values() if inspect.isfunction(part))]:
            if part.__doc__ is not None:
                part.__doc__ = re.sub(r"^( *)\{([\w, ]+)\}$", filled, part.__doc__, flags=re.MULTILINE)
        return piece

    return fill
