"""Translation score against the length of a sentence, with and without attention: what a benchmark measured."""

from regard.learn.figures.panels import CurvePanel, LessonFigure, Wording

# benchmarks/attention_and_length.py 800, as benchmarks/results/2026-11-16-attention-and-length.md keeps it; a test
# compares these numbers with that page.
WORDS = ("0–5", "6–9", "10–13", "14–19", "20–25", "26–98")
MIDDLES = (2.5, 7.5, 11.5, 16.5, 22.5, 34.0)
BLEU = {
    "none": (71.9, 78.0, 67.7, 61.8, 48.8, 46.6),
    "Bahdanau": (94.8, 96.2, 95.3, 98.0, 97.7, 92.8),
    "Luong": (94.0, 97.0, 95.8, 97.4, 97.3, 96.5),
    "Transformer": (95.9, 97.0, 96.5, 95.3, 94.0, 87.0),
}
NAMES = {
    "none": Wording("one fixed vector", "一个固定向量"),
    "Bahdanau": Wording("Bahdanau attention", "Bahdanau 注意力"),
    "Luong": Wording("Luong attention", "Luong 注意力"),
    "Transformer": Wording("Transformer", "Transformer"),
}


def show_lengths() -> LessonFigure:
    """BLEU of four translators that learned the same data for as many updates.

    >>> show_lengths().panels[0].lines[NAMES["none"]][-1]
    46.6
    """
    lines = {NAMES[name]: values for name, values in BLEU.items()}
    panel = CurvePanel(
        Wording("BLEU of the translations", "译文的 BLEU"),
        MIDDLES,
        lines,
        Wording("words of the source (middle of each group)", "原文的词数（各组的中点）"),
    )
    return LessonFigure((panel,))
