"""One query turned around a circle of keys: what each score function says of the angle and of the length."""

import numpy as np

from regard.attention import reference
from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording

ANGLES = np.arange(0, 181, 5)


def compare_scores(length: float | int = 1.0) -> LessonFigure:
    """Scores of a query of length 1 with a key of this length, at angles from 0° to 180°.

    >>> lines = compare_scores(2.0).panels[0].lines
    >>> {name.en: round(values[0], 2) for name, values in lines.items()}
    {'dot': 2.0, 'cosine': 1.0, 'Gaussian': -0.5}
    """
    query = np.array([[1.0, 0.0]])
    radians = np.deg2rad(ANGLES)
    keys = length * np.stack([np.cos(radians), np.sin(radians)], 1)
    lines = {
        Wording("dot", "点积"): reference.dot_scores(query, keys)[0].tolist(),
        Wording("cosine", "余弦"): reference.cosine_scores(query, keys)[0].tolist(),
        Wording("Gaussian", "高斯"): reference.gaussian_scores(query, keys)[0].tolist(),
    }
    title = Wording(
        f"score of a query of length 1 and a key of length {length}",
        f"长度为 1 的查询与长度为 {length} 的键的得分",
    )
    panel = CurvePanel(title, ANGLES.tolist(), lines, Wording("angle between them, degrees", "两者夹角（度）"))
    return LessonFigure((panel,))
