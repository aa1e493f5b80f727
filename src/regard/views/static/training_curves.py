"""The curves of one or more training runs as a figure: loss, validation scores, learning rate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Bbox

from regard.errors import DataError
from regard.tokens.visible import cut, visible
from regard.training.curves import BestScore, Point
from regard.training.differences import ABSENT, different_settings
from regard.training.settings import format_value
from regard.training.status import RunStatus
from regard.views.static.figure import fonts_of
from regard.views.static.figure_theme import DARK, LIGHT, STYLES, FigureTheme
from regard.views.static.panel_page import LETTER, PanelPage
from regard.views.static.picture import Picture
from regard.views.static.write import check_path, write

MOST_RUNS = len(LIGHT.lines)  # in one figure
MOST_ROWS = 30  # of the table
NAME = 40  # letters of a run's name at most


class Panel(NamedTuple):
    """One set of axes: what it shows, and the points of each run."""

    title: str
    points: list[list[Point]]
    decides: bool = False


def draw_curves(
    runs: Sequence[RunStatus], names: Sequence[str] | None = None, *, dark: bool = False, to: str | Path | None = None
) -> Figure:
    """Loss, every validation score and learning rate over the steps; several runs lie over each other.

    The best step is marked where its score decides. Below several runs stands a table of their best scores and of the
    settings in which they differ. Runs have colours and dashes; `dark` is for dark ground. `to` writes the figure: a
    path that ends in .svg, .png or .pdf.
    """
    path = check_path(to)
    panels, theme = list_panels(runs), DARK if dark else LIGHT
    if not panels:
        raise DataError("nothing is written of these runs yet, so there is no curve; wait for the first step")
    if len(runs) > MOST_RUNS:
        raise DataError(f"{len(runs)} runs are too many for one figure (at most {MOST_RUNS}); name those to compare")
    labels = [cut(visible(name), NAME) for name in names or [run.folder.resolve().name for run in runs]]
    table = list_differences(runs) if len(runs) > 1 else {}
    fonts = fonts_of([*labels, *(text for row in table.values() for text in row)], path)

    page = PanelPage(len(panels), labels if len(runs) > 1 else [], len(table))
    figure = Picture(figsize=(page.width, page.height), dpi=150)
    figure.set_facecolor(theme.ground)
    last = max(step for panel in panels for points in panel.points for step, _ in points)
    for number, panel in enumerate(panels):
        axes = figure.add_axes(page.panel(number))
        draw_panel(axes, panel, runs, theme)
        axes.set_xlim(-0.02 * last, 1.03 * last)  # the same for all, so that a step stands below itself
        if number + page.across >= len(panels):
            axes.set_xlabel("step", color=theme.pale, fontsize=9)
    add_heading(figure, page, labels, runs, theme, fonts)
    if table:
        add_table(figure.add_axes(page.table()), page.width, table, labels, theme, fonts)
    if path is not None:
        write(figure, path)
    return figure


def list_panels(runs: Sequence[RunStatus]) -> list[Panel]:
    """What there is to draw of any of the runs: loss, then each score, then the learning rate."""
    scores = list(dict.fromkeys(name for run in runs for name in run.curves.scores))
    deciding = {run.better.score for run in runs if run.better is not None}
    panels = [
        Panel("training loss", [run.curves.losses for run in runs]),
        *(
            Panel(f"validation {name}", [run.curves.scores.get(name, []) for run in runs], name in deciding)
            for name in scores
        ),
        Panel("learning rate", [run.curves.lrs for run in runs]),
    ]
    return [panel for panel in panels if any(panel.points)]


def draw_panel(axes: Axes, panel: Panel, runs: Sequence[RunStatus], theme: FigureTheme) -> None:
    """The line of each run; few points are marked, and so is the best one where the score decides."""
    for number, (run, points) in enumerate(zip(runs, panel.points, strict=True)):
        colour = theme.lines[number % len(theme.lines)]
        look: dict[str, Any] = {"color": colour, "linewidth": 1.6, "linestyle": STYLES[number % len(STYLES)]}
        if len(points) <= 40 and panel.title.startswith("validation"):
            look |= {"marker": "o", "markersize": 3}
        axes.plot([step for step, _ in points], [value for _, value in points], **look)
        if panel.decides and run.best is not None and panel.title == f"validation {run.best.score}":
            mark_best(axes, run.best, colour, theme, alone=len(runs) == 1)
    axes.set_title(panel.title, color=theme.ink, fontsize=10, loc="left")
    axes.set_facecolor(theme.ground)
    axes.grid(color=theme.rule, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(theme.rule)
    axes.tick_params(colors=theme.pale, labelsize=8, length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}".replace("-", "−")))
    axes.margins(y=0.1)


def mark_best(axes: Axes, best: BestScore, colour: str, theme: FigureTheme, *, alone: bool) -> None:
    """A ring around the best score, and what it is where there is one run only: of several, the table says it."""
    ring: dict[str, Any] = {"markersize": 8, "markerfacecolor": "none", "markeredgecolor": colour}
    axes.plot([best.step], [best.value], "o", markeredgewidth=1.6, **ring)
    if alone:
        said = f"best {best.value:.4g} at step {best.step:,}"
        axes.set_title(said, color=theme.pale, fontsize=8.5, loc="right")


def add_heading(
    figure: Figure,
    page: PanelPage,
    labels: Sequence[str],
    runs: Sequence[RunStatus],
    theme: FigureTheme,
    fonts: list[str],
) -> None:
    """The name of one run, or which line is which of several."""
    left, top = page.corner()
    if len(runs) == 1:
        said = f"{labels[0]}: {runs[0].task}, {runs[0].state}, step {runs[0].step:,} of {runs[0].steps:,}"
        text = figure.text(left, top, said, color=theme.ink, fontsize=11, family=fonts, ha="left", va="top")
        text.set_parse_math(False)
        return
    lines = [
        Line2D([], [], color=theme.lines[number], linestyle=STYLES[number % len(STYLES)], linewidth=2)
        for number in range(len(runs))
    ]
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "handlelength": 3, "borderaxespad": 0, "borderpad": 0}
    legend = figure.legend(lines, labels, loc="upper left", bbox_to_anchor=(left, top), ncols=page.beside, **look)
    for words in legend.get_texts():
        words.set(color=theme.ink, family=fonts, parse_math=False)


def list_differences(runs: Sequence[RunStatus]) -> dict[str, list[str]]:
    """The rows of the table: how good each run is, and the settings that are not the same."""
    scores = {run.best.score for run in runs if run.best is not None}
    one = len(scores) == 1  # all are judged by the same: it stands in front, once
    best = {
        f"best {next(iter(scores))}" if one else "best score": [
            ABSENT if run.best is None else f"{'' if one else run.best.score + ' '}{run.best.value:.4g}" for run in runs
        ],
        "at step": [ABSENT if run.best is None else f"{run.best.step:,}" for run in runs],
    }
    different = different_settings([{"task": run.task} | run.settings for run in runs])
    rows = best | {name: [visible(format_value(one)) for one in row] for name, row in different.items()}
    if len(rows) > MOST_ROWS:
        more = len(rows) - MOST_ROWS + 1
        rows = dict(list(rows.items())[: MOST_ROWS - 1]) | {f"… {more} more settings": [""] * len(runs)}
    return rows


def add_table(
    axes: Axes, width: float, rows: dict[str, list[str]], labels: Sequence[str], theme: FigureTheme, fonts: list[str]
) -> None:
    """Settings down, runs across; only the line below the heading is drawn."""
    axes.set_axis_off()
    room = int(width / (len(labels) + 1) / LETTER) - 1
    table = axes.table(
        cellText=[[cut(text, room) for text in (name, *values)] for name, values in rows.items()],
        colLabels=["", *(cut(label, room) for label in labels)],
        loc="upper left",
        cellLoc="left",
        colLoc="left",
        edges="B",
        bbox=Bbox.unit(),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor(theme.rule if row == 0 else theme.ground)
        text = cell.get_text()
        text.set(family=fonts, parse_math=False, color=theme.pale if column == 0 and row else theme.ink)
        if row == 0 and column:
            text.set_color(theme.lines[column - 1])
            text.set_fontweight("bold")
