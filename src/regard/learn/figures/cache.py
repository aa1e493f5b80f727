"""What a key/value cache saves: how many keys are projected while a text is written."""

from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording

LENGTHS = (1, 10, 100, 1000, 10000)


def count_projections() -> LessonFigure:
    """Keys projected by one head in writing n tokens, one at a time.

    >>> [values[2] for values in count_projections().panels[0].lines.values()]
    [5050, 100]
    """
    lines = {
        Wording("no cache: n(n + 1)/2", "没有缓存：n(n + 1)/2"): [n * (n + 1) // 2 for n in LENGTHS],
        Wording("with a cache: n", "有缓存：n"): list(LENGTHS),
    }
    title = Wording("keys that are projected while n tokens are written", "写 n 个词元，一共要投影多少个键")
    return LessonFigure((CurvePanel(title, LENGTHS, lines, Wording("n, tokens", "n：词元数"), log=True),))
