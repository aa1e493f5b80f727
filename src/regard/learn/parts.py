"""What a lesson is made of, whatever surface shows it."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Number: TypeAlias = float | int  # a whole number stays one: it may count something


@dataclass(frozen=True)
class Paragraph:
    """Running text, one line of Markdown inline markup."""

    text: str


@dataclass(frozen=True)
class BulletPoints:
    """A list, its items as Markdown inline markup; `numbered` from 1."""

    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True)
class TextTable:
    """A table of words, the heading first."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class CodeCell:
    """Python as a session shows it, `>>>` and what is printed. The cells of a lesson share one namespace, in order."""

    source: str


@dataclass(frozen=True)
class Formula:
    """A formula in Unicode, line by line as it was written."""

    text: str


@dataclass(frozen=True)
class Slider:
    """One setting of a figure that the reader moves, and the values at which its frames are computed.

    >>> Slider("width", (0.2, 0.5, 1.0), 0.5).nearest(0.6)
    0.5
    """

    setting: str
    values: tuple[Number, ...]
    start: Number

    def nearest(self, wanted: Number) -> Number:
        """The value of the slider that lies next to this one."""
        return min(self.values, key=lambda value: abs(value - wanted))


@dataclass(frozen=True)
class FigureCall:
    """A figure by the name of its function, with its settings."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    slider: Slider | None = None


@dataclass(frozen=True)
class ModelMap:
    """One map of an embedded model that reads a text: computed when the lesson is shown, not stored in it.

    Without `head` every head of the layer is shown; `question` is for a model that answers one about the text.
    """

    model: str
    text: str
    layer: str
    head: int | None = None
    question: str | None = None


LessonPart: TypeAlias = Paragraph | BulletPoints | TextTable | CodeCell | Formula | FigureCall | ModelMap


@dataclass(frozen=True)
class LessonSection:
    """A heading and what stands below it."""

    title: str
    parts: tuple[LessonPart, ...]


@dataclass(frozen=True)
class Lesson:
    """One lesson in one language. Each question is a section whose parts are its answer."""

    number: int
    name: str
    language: str
    title: str
    summary: str
    sections: tuple[LessonSection, ...]
    questions: tuple[LessonSection, ...]

    def parts(self) -> tuple[LessonPart, ...]:
        """Every part in reading order, those of answers last."""
        return tuple(part for section in (*self.sections, *self.questions) for part in section.parts)

    def sliders(self) -> dict[str, Slider]:
        """The sliders of its figures, by the setting that they move."""
        calls = (part for part in self.parts() if isinstance(part, FigureCall))
        return {call.slider.setting: call.slider for call in calls if call.slider is not None}
