"""The code of a lesson, run: what each cell prints here, and where that is not what the lesson says."""

import doctest
from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.learn.parts import CodeCell, Lesson

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class CellRun(NamedTuple):
    """One cell as it ran: the session with what was printed, and whether that is what the lesson says."""

    cell: CodeCell
    session: str
    agrees: bool


class SessionRecorder(doctest.DocTestRunner):
    """A doctest runner that keeps what each example printed instead of reporting it."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=FLAGS)
        self.printed: dict[int, tuple[str, bool]] = {}

    def report_start(self, out: Any, test: doctest.DocTest, example: doctest.Example) -> None:
        """Nothing is said while a lesson runs."""

    def report_success(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.printed[id(example)] = (got, True)

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.printed[id(example)] = (got, False)

    def report_unexpected_exception(self, out: Any, test: Any, example: doctest.Example, exc_info: Any) -> None:
        self.printed[id(example)] = (f"{exc_info[0].__name__}: {exc_info[1]}\n", False)


def run_cells(lesson: Lesson) -> list[CellRun]:
    """Every cell of the lesson in order, those of answers too, in one namespace.

    >>> from regard.learn.parts import LessonSection
    >>> cells = (CodeCell(">>> x = 1\\n>>> x + 1\\n2"), CodeCell(">>> x\\n7"))
    >>> lesson = Lesson(1, "one", "en", "One", "", (LessonSection("A", cells),), ())
    >>> [(run.session, run.agrees) for run in run_cells(lesson)]
    [('>>> x = 1\\n>>> x + 1\\n2', True), ('>>> x\\n1', False)]
    """
    cells = [part for part in lesson.parts() if isinstance(part, CodeCell)]
    parsed = [doctest.DocTestParser().get_examples(cell.source, lesson.name) for cell in cells]
    recorder = SessionRecorder()
    every = [example for examples in parsed for example in examples]
    recorder.run(doctest.DocTest(every, {}, lesson.name, None, 0, ""), out=lambda _: None)
    return [CellRun(cell, *write_session(examples, recorder)) for cell, examples in zip(cells, parsed)]


def write_session(examples: Sequence[doctest.Example], recorder: SessionRecorder) -> tuple[str, bool]:
    """The examples with what they printed, and whether all of it is as expected."""
    lines, agree = list[str](), True
    for example in examples:
        first, *more = example.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
        printed, agrees = recorder.printed.get(id(example), ("", False))
        lines += printed.rstrip("\n").split("\n") if printed.strip() else []
        agree = agree and agrees
    return "\n".join(lines), agree
