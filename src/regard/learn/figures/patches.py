"""A picture as patches, and which patches look alike: attention over raw pixels, before anything is learned."""

import numpy as np

from regard.attention import reference
from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording

SIDE = 16
SHARPNESS = 6.0  # what cosines are multiplied by before softmax


def draw_shapes() -> np.ndarray:
    """A picture of 16 × 16 pixels: a bright disc at the upper left, a pale one at the lower right.

    >>> draw_shapes().shape
    (16, 16)
    """
    y, x = np.mgrid[:SIDE, :SIDE]
    bright, pale = ((y - at) ** 2 + (x - at) ** 2 <= 10 for at in (3.5, 11.5))
    return np.where(bright, 1.0, np.where(pale, 0.6, 0.0))


def cut_patches(picture: np.ndarray, size: int) -> np.ndarray:
    """(patches, pixels): the picture cut into squares, row by row.

    >>> cut_patches(draw_shapes(), 4).shape
    (16, 16)
    """
    rows, columns = (side // size for side in picture.shape)
    return picture.reshape(rows, size, columns, size).swapaxes(1, 2).reshape(rows * columns, size * size)


def show_shapes(size: int = 4) -> LessonFigure:
    """The picture, and the map of its patches looking at each other by the cosine of their pixels.

    >>> [panel.values.shape for panel in show_shapes(4).panels]
    [(16, 16), (16, 16)]
    """
    picture = draw_shapes()
    patches = cut_patches(picture, size)
    across = SIDE // size
    names = [f"{at // across},{at % across}" for at in range(len(patches))]
    numbers = [str(at) for at in range(SIDE)]
    axes = Wording("rows of pixels", "像素行"), Wording("columns of pixels", "像素列")
    scores = SHARPNESS * reference.cosine_scores(patches, patches)
    return LessonFigure(
        (
            HeatPanel(Wording("a picture of 16 × 16 pixels", "16 × 16 像素的图片"), picture, numbers, numbers, axes),
            HeatPanel(
                Wording(
                    f"its {len(patches)} patches of {size} × {size} pixels, each looking at all by its raw pixels",
                    f"切成 {len(patches)} 个 {size} × {size} 的块，每块凭原始像素看所有块",
                ),
                reference.softmax(scores),
                names,
                names,
            ),
        )
    )
