"""The colours of figures with lines, on light and on dark ground; those of the explorer (web/src/paint)."""

from typing import Literal, NamedTuple


class FigureTheme(NamedTuple):
    """Ground, text and lines. Text has a contrast of at least 4.5 : 1; lines can be told apart by colour-blind eyes."""

    ground: str
    ink: str
    pale: str  # secondary text
    rule: str  # grid and borders
    lines: tuple[str, ...]


LIGHT = FigureTheme(
    ground="#ffffff",
    ink="#1b2330",
    pale="#566072",
    rule="#d3d8e0",
    lines=("#0072b2", "#c44e00", "#00916a", "#b5579a", "#002db4", "#4b2d0f", "#f0005a", "#6987ff"),
)
DARK = FigureTheme(
    ground="#12161d",
    ink="#e8ecf2",
    pale="#a3adbd",
    rule="#333c4a",
    lines=("#56b4e9", "#ff9248", "#2fc79b", "#e79bd0", "#5a78f0", "#ff3d7d", "#e1e11e", "#c84bd0"),
)
STYLES: tuple[Literal["-", "--", "-.", ":"], ...] = (
    "-",
    "--",
    "-.",
    ":",
)  # beside the colours, for eyes and printers that see none
