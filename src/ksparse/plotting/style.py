"""How every picture looks: colours told apart by colour-blind eyes, figures of pyplot's, legends that cover nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008): told apart by colour-blind eyes too. Methods keep their colour from picture to picture.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_OWN = {"auto": 6, "l2-PDCA": 0, "l2-APDCA": 1, "l1-DCA": 2, "MIP-DCA": 3, "APDCA fix": 1, "APDCA bt": 4, "pDCAe": 2}


def style(method: str, position: int = 0) -> tuple[str, str, Any]:
    """Colour, marker and dash of a method; one we do not know takes those of its position.

    Parameters
    ----------
    method : str
        The name of the method.
    position : int, default=0
        Of the line in the picture.

    Returns
    -------
    tuple of str, str and a dash
        As matplotlib takes them.

    Examples
    --------
    >>> from ksparse.plotting import style
    >>> style("auto")[0]
    '#000000'
    """
    return _look(_OWN.get(method, position))


def styles(names: Iterable[str]) -> list[tuple[str, str, Any]]:
    """Return a style for each name of one picture, no two the same: methods keep their own, the others take those that are free."""
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
    """A name as text: no mathematics between dollar signs, and not longer than a picture has room for."""
    text = str(name).replace("$", r"\$")
    return text if len(text) <= 40 else text[:37] + "..."


def axes(ax: Axes | None, height: float = 4.2) -> Axes:
    """The axes that were given, or those of a new figure of pyplot's, so that `plt.show()` and notebooks show it."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ksparse[plot]'") from error
    return plt.subplots(figsize=(7, height), layout="constrained", facecolor="white")[1]


def finish(ax: Axes, legend: bool) -> Axes:
    """Grid, frame and legend."""
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:  # outside the axes, where it covers nothing
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, fontsize="small")
    return ax
