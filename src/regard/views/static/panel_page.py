"""Where panels, a heading above them and a table below them stand on a page."""

from collections.abc import Sequence
from typing import NamedTuple

from regard.tokens.visible import columns

PANEL = (4.6, 2.6)  # inches
ROW = 0.24  # inches: a row of the table
LETTER = 0.085  # inches


class Margins(NamedTuple):
    """Inches around a panel, for what is written there."""

    left: float
    right: float
    top: float
    bottom: float


AROUND = Margins(left=0.65, right=0.2, top=0.35, bottom=0.5)


class PanelPage:
    """Where everything stands, in shares of the figure. Sizes are given, so the same runs are drawn to the same bytes.

    >>> page = PanelPage(panels=5, legend=[], table_rows=0)
    >>> page.across, page.down, round(page.width, 1), round(page.height, 1)
    (3, 2, 13.8, 5.6)
    """

    def __init__(self, panels: int, legend: Sequence[str], table_rows: int) -> None:
        self.across = min(panels, 2 if panels <= 4 else 3)
        self.down = -(-panels // self.across)
        self.width = PANEL[0] * self.across
        self.beside = 1  # names in a row of the legend
        if legend:
            fit = int(self.width / (max(map(columns, legend)) * LETTER + 0.8))
            self.beside = max(min(fit, len(legend)), 1)
        self.heading = 0.1 + 0.2 * max(-(-len(legend) // self.beside), 1)
        self.below = ROW * (table_rows + 1) + 0.15 if table_rows else 0.1
        self.height = self.heading + PANEL[1] * self.down + self.below

    def panel(self, number: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a panel, without what is written around it."""
        row, column = divmod(number, self.across)
        left, top = column * PANEL[0], self.height - self.heading - row * PANEL[1]
        box = (left + AROUND.left, top - PANEL[1] + AROUND.bottom, *self.inner())
        return self.share(*box)

    def inner(self) -> tuple[float, float]:
        return PANEL[0] - AROUND.left - AROUND.right, PANEL[1] - AROUND.top - AROUND.bottom

    def table(self) -> tuple[float, float, float, float]:
        return self.share(AROUND.left / 2, 0.05, self.width - AROUND.left / 2 - AROUND.right, self.below - 0.15)

    def corner(self) -> tuple[float, float]:
        """Where the heading begins: its left and its top."""
        return AROUND.left / 2 / self.width, 1 - 0.05 / self.height

    def share(self, left: float, bottom: float, width: float, height: float) -> tuple[float, float, float, float]:
        return left / self.width, bottom / self.height, width / self.width, height / self.height
