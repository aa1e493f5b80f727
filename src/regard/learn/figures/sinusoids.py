"""The table of sinusoidal positions as a map: quick waves on the left, slow ones on the right."""

from regard.attention import reference
from regard.learn.figures.panels import HeatPanel, LessonFigure, Wording


def show_sinusoids(width: int = 32, length: int = 24) -> LessonFigure:
    """Positions as rows, channels as columns.

    >>> show_sinusoids(4, 2).panels[0].values.round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    table = reference.sinusoid(length, width)
    title = Wording(
        f"sinusoids, {length} positions × {width} channels (darker is more)",
        f"正弦位置编码，{length} 个位置 × {width} 个通道（越深越大）",
    )
    axes = Wording("positions", "位置"), Wording("channels", "通道")
    rows, columns = [str(t) for t in range(length)], [str(c) for c in range(width)]
    return LessonFigure((HeatPanel(title, table, rows, columns, axes, diverging=True),))
