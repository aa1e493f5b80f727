"""The same road, taught: lessons whose every number is computed when it is looked at.

A lesson is one Markdown file per language (`lessons/en`, `lessons/zh`). `read_lesson` turns it into parts, and each
surface draws these parts: the terminal does it here (`terminal.py`).
"""

from regard.learn.library import LessonEntry, list_lessons, open_lesson
from regard.learn.parts import Lesson

__all__ = ["Lesson", "LessonEntry", "list_lessons", "open_lesson"]
