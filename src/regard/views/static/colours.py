"""The two colour scales, one for shares, one for differences, and both on dark ground."""

from functools import cache

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap

NIGHT = (22, 27, 35)  # nothing, on dark ground: as in web/src/paint/color.ts
BLUE_TO_RED = ((168, 214, 255), (74, 150, 224), (34, 74, 120), NIGHT, (124, 44, 38), (228, 98, 84), (255, 196, 184))


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


@cache
def dark_colours(*, signed: bool = False) -> Colormap:
    """The same for dark ground, where nothing is as dark as the ground and much is bright."""
    if signed:
        return LinearSegmentedColormap.from_list("dark differences", np.array(BLUE_TO_RED) / 255)
    t = np.linspace(0, 1, 256)[:, None]
    viridis, share = matplotlib.colormaps["viridis"](0.15 + 0.85 * t[:, 0])[:, :3], np.minimum(1, t / 0.3)
    return ListedColormap((1 - share) * np.array(NIGHT) / 255 + share * viridis, name="dark shares")


def contrast_ink(colour: tuple[float, ...]) -> str:
    """Black or white, whichever stands out more from the colour."""
    linear = np.array(colour[:3]) ** 2.2
    return "black" if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"
