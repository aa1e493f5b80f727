"""How many products of a query and a key each way of attending needs, against the length of the text."""

from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording

LENGTHS = (512, 2048, 8192, 32768, 131072)


def compare_cost(keys: int = 256) -> LessonFigure:
    """Counts for a causal text of n tokens: all pairs, a window of `keys`, `keys` random features.

    >>> [values[0] for values in compare_cost(256).panels[0].lines.values()]
    [131328, 98432, 262144]
    """
    lines = {
        Wording("causal, all pairs", "因果，全部配对"): [n * (n + 1) // 2 for n in LENGTHS],
        Wording(f"window of {keys}", f"窗口 {keys}"): [n * keys - keys * (keys - 1) // 2 for n in LENGTHS],
        Wording(f"Performer, {keys} features", f"Performer，{keys} 个特征"): [2 * n * keys for n in LENGTHS],
    }
    title = Wording("products of two vectors in one head", "一个头里要算的向量乘积数")
    said = Wording(
        f"all pairs n(n + 1)/2, a window about {keys}·n, random features 2·{keys}·n, for keys and for queries",
        f"全部配对为 n(n + 1)/2，窗口约为 {keys}·n，随机特征为 2·{keys}·n：键一遍，查询一遍",
    )
    return LessonFigure((CurvePanel(title, LENGTHS, lines, Wording("n, tokens", "n：词元数"), log=True),), said)
