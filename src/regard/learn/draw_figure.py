"""The figures of lessons, drawn: as lines of text and as figures, both from the same panels."""

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from regard.errors import ConfigError
from regard.learn.figures import FIGURES
from regard.learn.figures.panels import CurvePanel, HeatPanel, LessonFigure
from regard.learn.parts import FigureCall, Number
from regard.learn.wrap import wrap
from regard.tokens.visible import columns as wide
from regard.views.static.figure import heatmap
from regard.views.static.line_plot import line_plot
from regard.views.static.plot_text import plot_text
from regard.views.static.terminal import shade, table


def compute_figure(call: FigureCall, at: Number | None = None) -> LessonFigure:
    """The panels of a figure, with its slider at this value or where it starts.

    >>> figure = compute_figure(FigureCall("softmax"))
    >>> [panel.title.en for panel in figure.panels]
    ['weights of one row of scores, at five temperatures']
    """
    if call.name not in FIGURES:
        raise ConfigError(f"there is no figure {call.name!r:.40}; known are {', '.join(FIGURES)}")
    settings: dict[str, Any] = dict(call.settings)
    if call.slider is not None:
        settings[call.slider.setting] = call.slider.start if at is None else call.slider.nearest(at)
    return FIGURES[call.name](**settings)


def compute_frames(call: FigureCall) -> dict[Number, LessonFigure]:
    """Every frame of a figure with a slider, by the slider's value."""
    return {value: compute_figure(call, value) for value in call.slider.values} if call.slider is not None else {}


def draw_lines(figure: LessonFigure, language: str, *, width: int = 80, indent: int = 2) -> Iterator[str]:
    """The panels as text."""
    for number, panel in enumerate(figure.panels):
        if number:
            yield ""
        yield from wrap(panel.title[language], width - indent, first=" " * indent)
        text = (
            curve_lines(panel, language, width - indent) if isinstance(panel, CurvePanel) else grid_lines(panel, width)
        )
        yield from (f"{' ' * indent}{line}".rstrip() for line in text)
    if figure.said[language]:
        yield ""
        yield from wrap(figure.said[language], width - indent, first=" " * indent)


def grid_lines(panel: HeatPanel, width: int) -> Iterator[str]:
    if panel.numbers:
        yield from table(panel.values, panel.rows, panel.columns, digits=panel.digits, width=width - 2).split("\n")
    else:
        yield from shade(panel.values, panel.rows, width=width - 2).split("\n")


def curve_lines(panel: CurvePanel, language: str, width: int) -> Iterator[str]:
    """One plot below the other, since lines of text cannot cross; where the axis is logarithmic, numbers instead."""
    if panel.log or len(panel.x) < 12:
        names = [name[language] for name in panel.lines]
        columns = [f"{x:,.6g}" for x in panel.x]
        yield from (f"{panel.x_label[language]} →",)
        yield from number_table(names, columns, list(panel.lines.values()), width)
        return
    for name, values in panel.lines.items():
        yield name[language]
        yield from plot_text(scale_steps(panel.x, values), width=min(width, 64), height=4).split("\n")[:-1]
    first, last = panel.x[0], panel.x[-1]
    colon = "：" if language == "zh" else ": "
    yield f"{panel.x_label[language]}{colon}{first:.4g} … {last:.4g}"


def scale_steps(x: Any, values: Any) -> list[tuple[int, float]]:
    """The values over whole numbers, as a plot of text takes them."""
    return [
        (round((at - x[0]) / (x[-1] - x[0]) * 1000), float(value) + 0.0) for at, value in zip(x, values, strict=True)
    ]


def number_table(names: list[str], columns: list[str], rows: Sequence[Sequence[Number]], width: int) -> list[str]:
    """Numbers of very different sizes, a few digits of each."""
    cells = [[shorten_number(value) for value in row] for row in rows]
    left = max(map(wide, names))
    size = max(len(cell) for row in [columns, *cells] for cell in row) + 2
    fit = max((width - left) // size, 1)
    more = " …" if fit < len(columns) else ""
    return [
        name + " " * (left - wide(name)) + "".join(f"{cell:>{size}}" for cell in row[:fit]) + more
        for name, row in zip(["", *names], [columns, *cells], strict=True)
    ]


def shorten_number(value: Number) -> str:
    """Four digits, of large numbers three and their unit.

    >>> [shorten_number(value) for value in (0.98684, 95.3, 1032, 98432, 8590000128)]
    ['0.9868', '95.3', '1032', '98.4k', '8.59G']
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(size, 1e4):
            return f"{value / size:.3g}{unit}"
    return f"{value:.4g}"


def draw_pictures(figure: LessonFigure, language: str) -> list[Figure]:
    """The panels as figures, which write themselves as SVG, PNG or PDF."""
    drawn = []
    for panel in figure.panels:
        title = panel.title[language]
        if isinstance(panel, CurvePanel):
            lines = {name[language]: values for name, values in panel.lines.items()}
            x_label = panel.x_label[language]
            drawn.append(line_plot(panel.x, lines, title=title, x_label=x_label, points=panel.points, log=panel.log))
        else:
            rows, columns = (axis[language] for axis in panel.axes)
            drawn.append(
                heatmap(
                    panel.values,
                    title=title,
                    rows=rows,
                    columns=columns,
                    row_labels=panel.rows,
                    column_labels=panel.columns,
                    diverging=panel.diverging,
                )
            )
    return drawn
