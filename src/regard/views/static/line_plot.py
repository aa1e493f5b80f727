"""Lines over one axis as a figure: for lessons and pages, with a legend below."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from regard.views.static.figure import fonts_of
from regard.views.static.figure_theme import DARK, LIGHT, STYLES
from regard.views.static.picture import Picture
from regard.views.static.write import check_path, write


def line_plot(
    x: Sequence[float | int],
    lines: Mapping[str, Sequence[float | int]],
    *,
    title: str = "",
    x_label: str = "",
    points: tuple[Sequence[float], Sequence[float]] | None = None,
    log: bool = False,
    dark: bool = False,
    to: str | Path | None = None,
) -> Figure:
    """Each of the `lines` over `x`, in a colour and a dash of its own; `points` are drawn as dots beneath.

    `log` makes both axes logarithmic. `to` writes the figure: a path that ends in .svg, .png or .pdf.

    >>> figure = line_plot([1, 2, 3], {"squares": [1, 4, 9], "cubes": [1, 8, 27]}, title="Powers")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['squares', 'cubes']
    """
    path, theme = check_path(to), DARK if dark else LIGHT
    fonts = fonts_of([title, x_label, *lines], path)
    figure = Picture(figsize=(6.4, 3.6), dpi=150, layout="constrained")
    figure.set_facecolor(theme.ground)
    axes = figure.subplots()
    axes.set_facecolor(theme.ground)
    if points is not None:
        axes.plot(*points, "o", color=theme.pale, markersize=3, alpha=0.7)
    for number, (name, values) in enumerate(lines.items()):
        colour, style = theme.lines[number % len(theme.lines)], STYLES[number % len(STYLES)]
        axes.plot(x, values, label=name, linewidth=1.8, color=colour, linestyle=style)
    if log:
        axes.set(xscale="log", yscale="log")
    axes.grid(color=theme.rule, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(theme.rule)
    axes.tick_params(which="both", colors=theme.pale, labelsize=8, length=0)
    axes.set_xlabel(x_label, family=fonts, color=theme.pale, fontsize=9, parse_math=False)
    axes.set_title(title, family=fonts, color=theme.ink, fontsize=10, loc="left", parse_math=False)
    for words in axes.legend(frameon=False, fontsize=8).get_texts():
        words.set(color=theme.ink, family=fonts, parse_math=False)
    if path is not None:
        write(figure, path)
    return figure
