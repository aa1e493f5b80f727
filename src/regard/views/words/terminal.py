"""The words of a text with three columns of bars: what each counted for the class, in three ways."""

from regard.tasks.text_classification import TextClassification
from regard.tokens.visible import columns, cut, visible
from regard.views.words.ways import ImportanceMeasure, list_ways

BAR = 10  # columns
WORD = 24
FULL, AGAINST = "█", "░"
EIGHTHS = " ▏▎▍▌▋▊▉"


def words_text(one: TextClassification) -> str:
    """The classes with their probabilities, and below them a line for each word.

    >>> import torch
    >>> from regard.tasks.word_importance import WordImportance
    >>> found = WordImportance(("good", "film"), *torch.tensor([[0.6, 0.3], [1.2, -0.3], [2.0, 0.1]]), "the pooling")
    >>> print(words_text(TextClassification("good film", {"bad": 0.1, "good": 0.9}, [], False, found)))
    good 0.900   bad 0.100
    <BLANKLINE>
          attention         gradient × attention  leave-one-out
    good  ██████████ 0.60   ██████████ +1.20      ██████████ +2.00
    film  █████      0.30   ░░         -0.30      ▌          +0.10
    """
    ranked = sorted(one.probabilities.items(), key=lambda item: -item[1])
    lines = ["   ".join(f"{cut(visible(name), WORD)} {share:.3f}" for name, share in ranked)]
    if one.importance is None or not one.importance.words:
        return "\n".join(lines)
    ways = list_ways(one.importance)
    names = [cut(word, WORD) for word in one.importance.words]
    left = max(map(columns, names)) + 2
    widths = [max(columns(way.title), BAR + 7) + 2 for way in ways]
    lines += ["", " " * left + "".join(f"{way.title:<{width}}" for way, width in zip(ways, widths)).rstrip()]
    for at, name in enumerate(names):
        cells = "".join(f"{format_value(way, at):<{width}}" for way, width in zip(ways, widths))
        lines.append((name + " " * (left - columns(name)) + cells).rstrip())
    return "\n".join(lines)


def format_value(way: ImportanceMeasure, at: int) -> str:
    """A bar and a number."""
    value = way.values[at]
    bar = draw_bar(abs(value) / way.largest, AGAINST if value < 0 else FULL)
    return f"{bar:<{BAR}} {value:+.2f}" if way.signed else f"{bar:<{BAR}} {value:.2f}"


def draw_bar(share: float, mark: str) -> str:
    """A bar of at most ten columns; what speaks against the class is pale, in whole columns.

    >>> draw_bar(0.55, "█"), draw_bar(0.31, "░")
    ('█████▌', '░░░')
    """
    if mark == AGAINST:
        return mark * max(round(share * BAR), int(share > 0.01))
    whole, part = divmod(round(share * BAR * 8), 8)
    return mark * whole + (EIGHTHS[part].strip() if part else "")


def ways_notes(one: TextClassification) -> list[str]:
    """What the columns are, in a line each."""
    if one.importance is None or not one.importance.words:
        return []
    return [f"{way.title}: {way.about}" for way in list_ways(one.importance)]
