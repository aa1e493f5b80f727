"""A lesson as lines of text: at 80 columns, the same in a terminal, through a pipe and in a log."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from regard.learn.draw_figure import compute_figure, draw_lines
from regard.learn.library import list_lessons
from regard.learn.parts import (
    BulletPoints,
    CodeCell,
    FigureCall,
    Formula,
    Lesson,
    LessonPart,
    LessonSection,
    ModelMap,
    Number,
    Paragraph,
    TextTable,
)
from regard.learn.read_lesson import QUESTIONS
from regard.learn.read_map import LessonMap, read_map
from regard.learn.run_cells import CellRun
from regard.learn.wrap import join_lines, strip_markup, wrap
from regard.tokens.visible import columns
from regard.views.static.terminal import shade
from regard.views.static.trace_parts import grid_of, labels_of
from regard.views.static.trace_terminal import grid_text, list_text

WIDTH = 80
NAME = 12  # columns of a token's name
SIDE = 24  # tokens along a map of several heads

WORDS = {
    "en": {
        "lesson": "Lesson {number}: {title}",
        "hidden": "Try it first; the answers: regard learn {number} --answers",
        "next": "Next lesson: regard learn {number} ({name})",
        "slider": "slider {setting}: {values}; move it with --set {setting}=VALUE",
        "map": "{model} reads “{text}”; {layer}{head}",
        "asked": "{model} is asked “{question}” about “{text}”; {layer}{head}",
        "wrote": "it writes: {written}",
        "head": ", head {head}",
        "heads": ", every head",
        "colon": ": ",
        "axes": "rows are queries, columns are keys",
        "differs": "here this printed something else than the lesson says",
    },
    "zh": {
        "lesson": "第 {number} 课：{title}",
        "hidden": "先自己试一试；看答案：regard learn {number} --answers",
        "next": "下一课：regard learn {number}（{name}）",
        "slider": "滑块 {setting}：{values}；移动它：--set {setting}=数值",
        "map": "{model} 读“{text}”；{layer}{head}",
        "asked": "就“{text}”问 {model}：“{question}”；{layer}{head}",
        "wrote": "译文：{written}",
        "head": "，第 {head} 号头",
        "heads": "，全部的头",
        "colon": "：",
        "axes": "行是查询，列是键",
        "differs": "在这台机器上，这里打印的结果与课文不同",
    },
}


class LessonWriter(NamedTuple):
    """What is shown of a lesson: its answers, where its sliders stand, and its cells as they ran here, if they did."""

    lesson: Lesson
    answers: bool = False
    sliders: Mapping[str, Number] = {}
    runs: Mapping[CodeCell, CellRun] = {}

    def say(self, key: str, **about: object) -> str:
        return WORDS[self.lesson.language][key].format(**about)

    def lines(self) -> Iterator[str]:
        """The whole lesson."""
        lesson = self.lesson
        title = strip_markup(self.say("lesson", number=lesson.number, title=lesson.title))
        yield from (title, "=" * columns(title), "")
        yield from wrap(lesson.summary, WIDTH)
        for section in lesson.sections:
            yield from self.section(section)
        heading = QUESTIONS[lesson.language]
        yield from ("", heading, "-" * columns(heading))
        for number, question in enumerate(lesson.questions, 1):
            yield ""
            yield from wrap(question.title, WIDTH, first=f"{number}. ")
            for part in question.parts if self.answers else ():
                yield ""
                yield from self.part(part)
        if not self.answers:
            yield ""
            yield from wrap(self.say("hidden", number=lesson.number), WIDTH)
        following = [entry for entry in list_lessons(lesson.language) if entry.number == lesson.number + 1]
        if following:
            yield ""
            yield from wrap(self.say("next", number=following[0].number, name=following[0].name), WIDTH)

    def section(self, section: LessonSection) -> Iterator[str]:
        title = strip_markup(section.title)
        yield from ("", title, "-" * columns(title))
        for part in section.parts:
            yield ""
            yield from self.part(part)

    def part(self, part: LessonPart) -> Iterator[str]:
        """One part, whatever it is."""
        match part:
            case Paragraph():
                yield from wrap(part.text, WIDTH)
            case BulletPoints():
                for number, item in enumerate(part.items, 1):
                    yield from wrap(item, WIDTH, first=f"{number}. " if part.numbered else "- ")
            case TextTable():
                yield from table_lines(part, self.say("colon"))
            case Formula():
                yield from (f"    {line}".rstrip() for line in part.text.split("\n"))
            case CodeCell():
                yield from self.cell(part)
            case FigureCall():
                yield from self.figure(part)
            case ModelMap():
                yield from self.map(part)

    def cell(self, cell: CodeCell) -> Iterator[str]:
        run = self.runs.get(cell)
        shown = cell.source if run is None else run.session
        yield from (f"    {line}".rstrip() for line in shown.replace("<BLANKLINE>", "").split("\n"))
        if run is not None and not run.agrees:
            yield f"  ! {self.say('differs')}"

    def figure(self, call: FigureCall) -> Iterator[str]:
        at = self.sliders.get(call.slider.setting) if call.slider is not None else None
        yield from draw_lines(compute_figure(call, at), self.lesson.language, width=WIDTH)
        if call.slider is not None:
            here = call.slider.start if at is None else call.slider.nearest(at)
            shown = " ".join(f"[{value:g}]" if value == here else f"{value:g}" for value in call.slider.values)
            yield ""
            yield from wrap(self.say("slider", setting=call.slider.setting, values=shown), WIDTH - 2, first="  ")

    def map(self, wanted: ModelMap) -> Iterator[str]:
        found = read_map(wanted)
        head = self.say("heads") if wanted.head is None else self.say("head", head=wanted.head)
        key = "map" if wanted.question is None else "asked"
        about = {"model": wanted.model, "text": wanted.text, "layer": found.layer.name, "question": wanted.question}
        yield from wrap(self.say(key, **about, head=head), WIDTH - 2, first="  ", rest="  ")
        if found.written:
            yield from wrap(self.say("wrote", written=found.written), WIDTH - 2, first="  ", rest="  ")
        yield from (f"  {self.say('axes')}", "")
        drawn = heads_lines(self, found) if wanted.head is None else head_lines(found, wanted.head)
        yield from (f"  {line}".rstrip() for line in drawn)


def head_lines(found: LessonMap, head: int) -> list[str]:
    """Every weight of one head with its tokens, or, where that is too wide, each query with its strongest keys."""
    queries, keys = labels_of(found.layer, NAME)
    one, room = found.layer.head(head), WIDTH - 2
    if max(map(columns, queries)) + 2 + sum(max(columns(key), 4) + 1 for key in keys) > room:
        return list_text(found.layer, head, queries, keys, room).plain.rstrip("\n").split("\n")
    grid, _ = grid_of(one, *one.shape)
    return grid_text(grid, queries, keys).plain.rstrip("\n").split("\n")


def heads_lines(writer: LessonWriter, found: LessonMap) -> Iterator[str]:
    """Each head as a shaded picture, as many side by side as fit."""
    layer = found.layer
    queries, _ = labels_of(layer, NAME)
    left = max(map(columns, queries)) + 2
    grids = [grid_of(layer.head(head), SIDE, SIDE)[0] for head in range(layer.heads)]
    size = 2 * grids[0].shape[1] + 2
    across = max(1, (WIDTH - 2 - left) // size)
    named = len(queries) == grids[0].shape[0]
    for first in range(0, layer.heads, across):
        if first:
            yield ""
        some = [shade(grid, width=2 * SIDE, most=1.0).split("\n") for grid in grids[first : first + across]]
        yield " " * left + "".join(f"{first + at:<{size}}" for at in range(len(some)))
        for row, parts in enumerate(zip(*some, strict=True)):
            name = queries[row] if named else ""
            yield name + " " * (left - columns(name)) + "".join(f"{part:<{size}}" for part in parts)


def table_lines(table: TextTable, colon: str) -> Iterator[str]:
    """Columns side by side; where they are too wide together, each row as a list of its cells with their headings."""
    rows = [tuple(join_lines(strip_markup(cell)) for cell in row) for row in (table.heading, *table.rows)]
    sizes = [max(columns(row[at]) for row in rows) for at in range(len(rows[0]))]
    if sum(sizes) + 2 * len(sizes) > WIDTH:
        for name, *cells in rows[1:]:
            yield from wrap(name, WIDTH, first="  ")
            for heading, cell in zip(rows[0][1:], cells, strict=True):
                yield from wrap(cell, WIDTH, first=f"    {heading}{colon}", rest="      ")
        return
    for number, row in enumerate(rows):
        start = "  ".join(cell + " " * (size - columns(cell)) for cell, size in zip(row[:-1], sizes))
        yield from wrap(row[-1], WIDTH, first=f"  {start}  ")
        if number == 0:
            yield "  " + "  ".join("-" * size for size in sizes)[: WIDTH - 2]
