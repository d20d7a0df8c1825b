"""Style of all plots: colours for colour-blind readers, figures of pyplot, legends above the axes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008), for colour-blind readers. Methods have the same colour in all plots.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_OWN = {"auto": 6, "l2-PDCA": 0, "l2-APDCA": 1, "l1-DCA": 2, "MIP-DCA": 3, "APDCA fix": 1, "APDCA bt": 4, "pDCAe": 2}


def style(method: str, position: int = 0) -> tuple[str, str, Any]:
    """Return colour, marker and dash of a method; those of its position if the method is unknown.

    Parameters
    ----------
    method : str
        Name of the method.
    position : int, default=0
        Position of the line in the plot.

    Returns
    -------
    tuple of str, str and a dash
        Arguments of matplotlib.

    Examples
    --------
    >>> from ksparse.plotting import style
    >>> style("auto")[0]
    '#000000'
    """
    return _look(_OWN.get(method, position))


def styles(names: Iterable[str]) -> list[tuple[str, str, Any]]:
    """Return distinct styles for the names of one plot; known methods have fixed styles."""
    names, taken = list(names), dict[int, int]()
    for place, name in enumerate(names):
        taken.setdefault(_OWN.get(name, -1 - place), place)
    looks = {place: look for look, place in taken.items() if look >= 0}
    free = (look for look in count() if look not in looks.values())
    return [_look(looks[place] if place in looks else next(free)) for place in range(len(names))]


def _look(i: int) -> tuple[str, str, Any]:
    """Return one of 49 combinations of a colour with a marker and a dash."""
    shifted = (i + i // len(COLOURS)) % len(COLOURS)
    return COLOURS[i % len(COLOURS)], MARKERS[shifted], DASHES[shifted]


def words(name: Any) -> str:
    """Return a name without mathematics between dollar signs, cut to 40 characters."""
    text = str(name).replace("$", r"\$")
    return text if len(text) <= 40 else text[:37] + "..."


def axes(ax: Axes | None, height: float = 4.2) -> Axes:
    """Return the given axes, or those of a new figure of pyplot, which `plt.show()` and notebooks show."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ksparse[plot]'") from error
    return plt.subplots(figsize=(7, height), layout="constrained", facecolor="white")[1]


def finish(ax: Axes, legend: bool) -> Axes:
    """Add grid, frame and legend."""
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, fontsize="small")
    return ax
