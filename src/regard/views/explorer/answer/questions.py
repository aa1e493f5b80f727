"""The questions that a view may ask of a trace, each with the limits of its arguments. Whoever asks is not trusted."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.errors import TraceError

MOST = 2**31 - 1
HIGHEST = 30  # levels: 2^30 tokens on a side of one cell
QUERIES, KEYS, THUMB = 512, 256, 128

Place = Annotated[int, Field(ge=0, le=MOST)]


class Question(BaseModel):
    """One question with its arguments; nothing is guessed, nothing is left over."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class LayerQuestion(Question):
    layer: Place


class EntryQuestion(LayerQuestion):
    """Of one batch entry of a layer."""

    batch: Place


class HeadQuestion(EntryQuestion):
    head: Place


class TileQuestion(HeadQuestion):
    level: Annotated[int, Field(ge=0, le=HIGHEST)]
    row: Place
    column: Place
    coarse: bool


class RowQuestion(HeadQuestion):
    query: Place


class ColumnQuestion(HeadQuestion):
    key: Place


class TopQuestion(HeadQuestion):
    first: Place
    queries: Annotated[int, Field(ge=1, le=QUERIES)]
    count: Annotated[int, Field(ge=1, le=KEYS)]


class ThumbsQuestion(EntryQuestion):
    size: Annotated[int, Field(ge=1, le=THUMB)]


class MeasuresQuestion(EntryQuestion):
    pass


class ProofQuestion(LayerQuestion):
    pass


class HiddenQuestion(HeadQuestion):
    pass


class NumbersQuestion(HeadQuestion):
    query: Place
    key: Place


class FlowQuestion(Question):
    query: Place
    batch: Place
    residual: Annotated[float, Field(ge=0, le=1)]
    by: Literal["weights", "values"]
    coarse: bool = False  # of a long run by some rows of each layer, at once


QUESTIONS: dict[str, type[Question]] = {
    "tile": TileQuestion,
    "row": RowQuestion,
    "column": ColumnQuestion,
    "top": TopQuestion,
    "thumbs": ThumbsQuestion,
    "measures": MeasuresQuestion,
    "proof": ProofQuestion,
    "hidden": HiddenQuestion,
    "numbers": NumbersQuestion,
    "flow": FlowQuestion,
}


def read_question(what: Any, about: Any) -> Question:
    """Validate a question as far as that needs no trace; done once, where it comes in.

    Raises `TraceError`, in one sentence, where it is none.

    >>> read_question("proof", {"layer": 3})
    ProofQuestion(layer=3)
    >>> try:
    ...     read_question("proof", {"layer": True})
    ... except TraceError as error:
    ...     print(error)
    'proof' was asked with layer = True: input should be a valid integer
    """
    kind = QUESTIONS.get(what) if isinstance(what, str) else None
    if kind is None:
        raise TraceError(f"{shorten(what)} was asked, but a trace answers {', '.join(QUESTIONS)}")
    if not isinstance(about, dict):
        raise TraceError(
            f"{what!r} was asked with {shorten(about)}; give an object with {', '.join(kind.model_fields)}"
        )
    try:
        return kind.model_validate(about)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"]))
    said = first["msg"][:1].lower() + first["msg"][1:]
    if first["type"] == "missing":
        raise TraceError(f"{what!r} was asked without {name}; give {', '.join(kind.model_fields)}")
    raise TraceError(f"{what!r} was asked with {shorten(name, bare=True)} = {shorten(first['input'])}: {said}")


def shorten(given: Any, *, bare: bool = False) -> str:
    """What came, in few enough characters for a sentence."""
    if isinstance(given, int) and abs(given) > MOST:  # thousands of digits would be refused by repr itself
        return "a huge number"
    shown = str(given) if bare else repr(given)
    return shown if len(shown) <= 60 else shown[:60] + "…"
