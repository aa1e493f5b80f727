"""What `regard learn` prints: the list of lessons, or one of them."""

from collections.abc import Iterator, Sequence

from regard.errors import ConfigError
from regard.learn.library import list_lessons, open_lesson
from regard.learn.parts import Lesson
from regard.learn.run_cells import run_cells
from regard.learn.terminal import LessonWriter
from regard.learn.wrap import strip_markup, wrap
from regard.tokens.visible import columns

INTRODUCTION = {
    "en": "Attention, taught along one road. Every number is computed by this package, and every cell runs.",
    "zh": "沿着一条路学注意力。每个数字都由本包算出，每段代码都能运行。",
}
NEXT = {
    "en": "Read one: regard learn 1. Its answers: --answers. Run its code here: --run. 中文：--language zh",
    "zh": "读一课：regard learn 1；看答案：--answers；在本机运行代码：--run。English: --language en",
}


def list_lines(language: str) -> Iterator[str]:
    """The lessons, each with what it is about."""
    yield from wrap(INTRODUCTION[language])
    entries = list_lessons(language)
    left = max(columns(entry.name) for entry in entries)
    for entry in entries:
        lesson = open_lesson(entry.number, language)
        yield ""
        yield f"{entry.number:>2}  {entry.name:<{left}}  {strip_markup(lesson.title)}"
        yield from wrap(lesson.summary, first="    ")
    yield ""
    yield from wrap(NEXT[language])


def lesson_lines(
    wanted: str, language: str, *, answers: bool = False, run: bool = False, settings: Sequence[str] = ()
) -> Iterator[str]:
    """One lesson; `run` runs its cells first and shows what they print here."""
    lesson = open_lesson(wanted, language)
    sliders = dict(read_setting(lesson, setting) for setting in settings)
    runs = {one.cell: one for one in run_cells(lesson)} if run else {}
    yield from LessonWriter(lesson, answers, sliders, runs).lines()


def read_setting(lesson: Lesson, text: str) -> tuple[str, float]:
    """`width=0.5`, or the number alone where the lesson has one slider."""
    sliders = lesson.sliders()
    if not sliders:
        raise ConfigError(f"lesson {lesson.number} has no slider, so there is nothing to set; leave --set out")
    name, equals, value = text.rpartition("=")
    known = ", ".join(f"{one.setting} ({one.values[0]:g} to {one.values[-1]:g})" for one in sliders.values())
    if not equals and len(sliders) == 1:
        name = next(iter(sliders))
    if name.strip() not in sliders:
        raise ConfigError(f"{text!r:.40} names no slider of lesson {lesson.number}; there is {known}: --set NAME=VALUE")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if number != number:
        raise ConfigError(f"{value!r:.40} is no number; give one for {known}")
    return name.strip(), number
