"""The two colour scales: one for shares, one for differences."""

from functools import cache

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, ListedColormap


@cache
def weight_colours() -> Colormap:
    """Viridis turned round, its bright end softened to paper, so that a map of mostly nothing is quiet."""
    t = np.linspace(0, 1, 256)[:, None]
    viridis, paper = matplotlib.colormaps["viridis_r"](t[:, 0])[:, :3], np.array([[1.0, 1.0, 0.96]])
    softened = (1 - t) ** 4
    return ListedColormap(softened * paper + (1 - softened) * viridis, name="shares").with_extremes(bad=(0, 0, 0, 0))


@cache
def difference_colours() -> Colormap:
    """Blue below zero, red above."""
    return matplotlib.colormaps["RdBu_r"].with_extremes(bad=(0, 0, 0, 0))


def contrast_ink(colour: tuple[float, ...]) -> str:
    """Black or white, whichever stands out more from the colour."""
    linear = np.array(colour[:3]) ** 2.2
    return "black" if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"
