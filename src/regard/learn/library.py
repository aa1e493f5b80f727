"""The lessons that come with the package: their list, and one of them by its number or name."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from regard.errors import ConfigError, DataError
from regard.learn.parts import Lesson
from regard.learn.read_lesson import QUESTIONS, read_lesson

FOLDER = Path(__file__).parent / "lessons"
LANGUAGES = tuple(QUESTIONS)


class LessonEntry(NamedTuple):
    """A lesson in the list: what it is called, and where it lies."""

    number: int
    name: str
    file: Path


def list_lessons(language: str = "en") -> list[LessonEntry]:
    """The lessons in this language, in the order of the road.

    >>> [(entry.number, entry.name) for entry in list_lessons("zh")][:2]
    [(1, 'why-attention'), (2, 'kernel-regression')]
    """
    files = sorted((FOLDER / check_language(language)).glob("[0-9][0-9]-*.md"))
    return [LessonEntry(int(file.stem[:2]), file.stem[3:], file) for file in files]


@cache
def open_lesson(wanted: str | int, language: str = "en") -> Lesson:
    """The lesson of this number or name.

    >>> open_lesson("softmax").number, open_lesson("6").name
    (6, 'softmax')
    >>> open_lesson("sofmax")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no lesson 'sofmax'; did you mean softmax? `regard learn` lists them all
    """
    entry = find_lesson(str(wanted), list_lessons(language))
    try:
        text = entry.file.read_text(encoding="utf-8")
        return read_lesson(text, number=entry.number, name=entry.name, language=language)
    except DataError as error:
        raise DataError(f"{entry.file.name}, {error}") from error


def find_lesson(wanted: str, entries: list[LessonEntry]) -> LessonEntry:
    """By its number, its name, or a beginning of its name that no other has."""
    folded = wanted.strip().lower().replace(" ", "-").replace("_", "-")
    exact = [entry for entry in entries if folded in (entry.name, str(entry.number), f"{entry.number:02}")]
    some = exact or [entry for entry in entries if folded and entry.name.startswith(folded)]
    if len(some) == 1:
        return some[0]
    near = [entry.name for entry in some] or get_close_matches(folded, [entry.name for entry in entries], 2, 0.5)
    meant = f"did you mean {' or '.join(near)}? " if near else f"there are {len(entries)}; " if folded.isdigit() else ""
    raise ConfigError(f"there is no lesson {wanted!r:.60}; {meant}`regard learn` lists them all")


def check_language(language: str) -> str:
    """The language itself, refused where no lesson is written in it."""
    if language not in LANGUAGES:
        raise ConfigError(f"no lesson is written in {language!r:.20}; choose {' or '.join(LANGUAGES)}")
    return language


def language_of(environment: Mapping[str, str] = os.environ) -> str:
    """The language of the locale where lessons are written in it, else English.

    >>> language_of({"LANG": "zh_CN.UTF-8"}), language_of({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}), language_of({})
    ('zh', 'en', 'en')
    """
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    said = next(filter(None, names), "")[:2].lower()
    return said if said in LANGUAGES else LANGUAGES[0]
