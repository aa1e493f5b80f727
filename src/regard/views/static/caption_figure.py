"""Where each word of a caption looked: the picture once for each, clear where it took much (Xu et al. 2015)."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure

from regard.errors import ShapeError
from regard.views.static.figure import fonts_of
from regard.views.static.grid import clean_label
from regard.views.static.write import check_path, write

PANEL = 1.5  # inches
ACROSS = 6  # panels in a row
FAINT = 0.2  # how much is left of a place that a word took nothing of
GREY = 128  # what it fades into, so that bright and dark places show alike


def caption_figure(
    pixels: UInt8[np.ndarray, "y x c"],
    words: Sequence[str],
    looked: Float[np.ndarray, "t v u"],
    *,
    to: str | Path | None = None,
) -> Figure:
    """The picture alone, then once for each word: as clear as the share it took, with the largest share beside it.

    `looked` has a row for each word, and may have one more for the end, which is not drawn.

    >>> made = caption_figure(np.zeros((8, 8, 3), dtype=np.uint8), ["a", "ring"], np.full((3, 2, 2), 0.25))
    >>> [panel.get_title() for panel in made.axes]
    ['', 'a  0.25', 'ring  0.25']
    """
    path = check_path(to)
    if len(looked) < len(words):
        raise ShapeError(f"{len(words)} words came, but maps of {len(looked)}; give one for each")
    count = len(words) + 1
    across = min(ACROSS, count)
    down = math.ceil(count / across)
    sheet = Figure(figsize=(across * PANEL, down * (PANEL + 0.25)), layout="constrained")
    grey = pixels.shape[-1] == 1
    for at in range(count):
        panel = sheet.add_subplot(down, across, at + 1)
        panel.set_axis_off()
        picture = pixels.repeat(3, -1) if grey else pixels
        if at:
            shares = looked[at - 1]
            label = f"{clean_label(words[at - 1], 24)}  {shares.max():.2f}"
            panel.set_title(label, fontsize=9, fontfamily=fonts_of([label], path))
            picture = light_up(picture, shares)
        panel.imshow(picture, interpolation="nearest")
    if path is not None:
        write(sheet, path)
    return sheet


def light_up(pixels: UInt8[np.ndarray, "y x c"], shares: Float[np.ndarray, "v u"]) -> UInt8[np.ndarray, "y x c"]:
    """The picture, each of its cells as clear as its share of the largest.

    >>> light_up(np.full((2, 4, 3), 200, dtype=np.uint8), np.array([[0.1, 0.4]]))[0, :, 0].tolist()
    [157, 157, 200, 200]
    """
    height, width = pixels.shape[:2]
    rows, columns = (np.arange(side) * cells // side for side, cells in zip((height, width), shares.shape))
    clear = (FAINT + (1 - FAINT) * shares / max(float(shares.max()), 1e-12))[rows][:, columns, None]
    return np.rint(pixels * clear + GREY * (1 - clear)).astype(np.uint8)
