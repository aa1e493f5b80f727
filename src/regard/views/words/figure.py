"""A text three times over, its words shaded by attention, by gradient × attention and by leave-one-out."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from regard.tasks.text_classification import TextClassification
from regard.tokens.visible import columns
from regard.views.static.colours import contrast_ink, difference_colours, weight_colours
from regard.views.static.figure import fonts_of
from regard.views.static.grid import clean_label
from regard.views.static.picture import Picture
from regard.views.static.write import check_path, write
from regard.views.words.layout import place_words
from regard.views.words.ways import ImportanceMeasure, list_ways

WIDTH = 88  # columns of a line
LETTER, LINE = 0.095, 0.26  # inches
MONO = "DejaVu Sans Mono"  # comes with matplotlib; every letter is as wide as every other


def words_figure(one: TextClassification, *, to: str | Path | None = None) -> Figure:
    """The words of a text in three panels, darker where they counted more; red speaks for the class, blue against it.

    `to` writes the figure: a path that ends in .svg, .png or .pdf.

    >>> import torch
    >>> from regard.tasks.word_importance import WordImportance
    >>> found = WordImportance(("good", "film"), *torch.tensor([[0.6, 0.3], [1.2, -0.3], [2.0, 0.1]]), "the pooling")
    >>> figure = words_figure(TextClassification("good film", {"bad": 0.1, "good": 0.9}, [], False, found))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['attention', 'gradient × attention', 'leave-one-out']
    """
    path = check_path(to)
    found = one.importance
    words = [clean_label(word, 32) for word in found.words] if found is not None else []
    ways = [] if found is None else list_ways(found)
    fonts = [MONO, *fonts_of([*words, one.label], path)]
    placed = place_words(words, WIDTH)
    lines = max((place.line for place in placed), default=0) + 1
    widest = max((place.column + columns(word) for place, word in zip(placed, words)), default=1)
    width = max(widest * LETTER, 6.5)
    figure = Picture(figsize=(width + 0.4, (lines * LINE + 0.75) * max(1, len(ways)) + 0.6), dpi=150)
    figure.set_layout_engine("constrained")
    shares = sorted(one.probabilities.items(), key=lambda item: -item[1])
    title = "   ".join(f"{clean_label(name)} {share:.3f}" for name, share in shares[:6])
    figure.suptitle(title, x=0.01, ha="left", family=fonts, fontsize=11, parse_math=False)
    for axes, way in zip(panels(figure, len(ways)), ways):
        axes.set(xlim=(0, width / LETTER), ylim=(lines, 0))
        axes.axis("off")
        axes.set_title(way.title, loc="left", fontsize=10, family=fonts)
        axes.text(0, lines + 0.15, way.about, fontsize=7, color="#666", va="top", family=fonts, parse_math=False)
        for word, value, place in zip(words, way.values, placed):
            draw_word(axes, word, colour_of(way, value), (place.column, place.line), fonts)
    if path is not None:
        write(figure, path)
    return figure


def panels(figure: Figure, count: int) -> list[Axes]:
    """One place below the other."""
    return list(figure.subplots(count, 1, squeeze=False)[:, 0]) if count else []


def draw_word(axes: Axes, word: str, colour: tuple[float, ...], at: tuple[int, int], fonts: list[str]) -> None:
    """A word in its box."""
    column, line = at
    size = columns(word)
    axes.add_patch(Rectangle((column, line + 0.08), size, 0.84, facecolor=colour[:3], linewidth=0))
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "family": fonts, "parse_math": False}
    axes.text(column + size / 2, line + 0.5, word, color=contrast_ink(colour), **middle)


def colour_of(way: ImportanceMeasure, value: float) -> tuple[float, float, float, float]:
    """The colour of a number among those of its way: shares from paper to dark, others from blue over white to red.

    >>> colour_of(ImportanceMeasure("attention", "", False, [0.0, 2.0]), 0.0)[:3]
    (1.0, 1.0, 0.96)
    """
    scaled = value / way.largest
    found = difference_colours()((scaled + 1) / 2) if way.signed else weight_colours()(scaled)
    red, green, blue, opacity = map(float, found)
    return red, green, blue, opacity
