"""Digits drawn with a pen, light on dark as in MNIST: examples that are nobody's handwriting."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float, UInt8

PEN = 1.25  # pixels from the middle of a stroke to its rim, of 28
SOFT = 0.9  # pixels over which the rim fades
BOX = (20.0, 14.0)  # height and width of a digit within the 28 × 28 pixels
Points = list[tuple[float, float]]


def arc(down: float, right: float, tall: float, wide: float, begin: int, end: int) -> Points:
    """Points of a part of an ellipse; angles in degrees, 0 to the right, clockwise as rows grow downwards."""
    angles = np.radians(np.linspace(begin, end, 25))
    return [(down + tall * float(np.sin(one)), right + wide * float(np.cos(one))) for one in angles]


# (down, right) from 0 to 1 within the box; each list is one stroke.
STROKES: dict[int, list[Points]] = {
    0: [arc(0.5, 0.5, 0.5, 0.45, 0, 360)],
    1: [[(0.12, 0.42), (0.0, 0.55), (1.0, 0.5)]],
    2: [[*arc(0.27, 0.48, 0.27, 0.42, 190, 380), (0.98, 0.05)], [(0.98, 0.05), (0.96, 0.98)]],
    3: [arc(0.26, 0.45, 0.26, 0.38, 205, 440), arc(0.74, 0.45, 0.26, 0.42, 280, 515)],
    4: [[(0.0, 0.3), (0.6, 0.08), (0.6, 0.95)], [(0.05, 0.75), (1.0, 0.68)]],
    5: [[(0.02, 0.9), (0.0, 0.2), (0.42, 0.15)], arc(0.69, 0.42, 0.3, 0.45, 240, 510)],
    6: [[(0.0, 0.7), (0.3, 0.3), (0.7, 0.1)], arc(0.72, 0.46, 0.28, 0.37, 0, 360)],
    7: [[(0.03, 0.05), (0.0, 0.95), (1.0, 0.4)]],
    8: [arc(0.25, 0.5, 0.25, 0.33, 0, 360), arc(0.75, 0.5, 0.25, 0.4, 0, 360)],
    9: [arc(0.27, 0.45, 0.27, 0.38, 0, 360), [(0.27, 0.83), (1.0, 0.65)]],
}


def draw_digit(digit: int, *, size: int = 28) -> UInt8[np.ndarray, "y x"]:
    """A digit as a picture of `size` × `size` pixels, 0 dark and 255 light.

    >>> seven = draw_digit(7)
    >>> seven.shape, int(seven.max()), int(seven[0].max())
    ((28, 28), 255, 0)
    """
    scale = size / 28
    height, width = BOX
    corner = np.array([(28 - height) / 2, (28 - width) / 2])
    middles = (np.indices((size, size)).reshape(2, -1).T + 0.5) / scale  # of pixels, as a picture of 28 counts
    nearest = np.full(len(middles), np.inf)
    for stroke in STROKES[digit]:
        points = np.array(stroke) * [height, width] + corner
        for begin, end in pairwise(points):
            nearest = np.minimum(nearest, measure_distance(middles, begin, end))
    light = np.clip((PEN + SOFT / 2 - nearest) / SOFT, 0, 1)
    return np.rint(255 * light).astype(np.uint8).reshape(size, size)


def measure_distance(
    points: Float[np.ndarray, "n 2"], begin: Float[np.ndarray, "2"], end: Float[np.ndarray, "2"]
) -> Float[np.ndarray, " n"]:
    """How far points are from a line between two others."""
    along = end - begin
    share = np.clip((points - begin) @ along / max(float(along @ along), 1e-12), 0, 1)
    return np.linalg.norm(points - begin - share[:, None] * along, axis=1)
