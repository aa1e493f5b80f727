"""What may be asked, and of what: each question with its limits. Whoever asks is not trusted."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.errors import TraceError

MOST = 2**31 - 1
HIGHEST = 30  # levels: 2^30 tokens on a side of one cell
QUERIES, KEYS, THUMB = 512, 256, 128

Place = Annotated[int, Field(ge=0, le=MOST)]


class About(BaseModel):
    """The arguments of one question; nothing is guessed, nothing is left over."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Layer(About):
    layer: Place


class Entry(Layer):
    batch: Place


class Head(Entry):
    head: Place


class Tile(Head):
    level: Annotated[int, Field(ge=0, le=HIGHEST)]
    row: Place
    column: Place
    coarse: bool


class Row(Head):
    query: Place


class Column(Head):
    key: Place


class Top(Head):
    first: Place
    queries: Annotated[int, Field(ge=1, le=QUERIES)]
    count: Annotated[int, Field(ge=1, le=KEYS)]


class Thumbs(Entry):
    size: Annotated[int, Field(ge=1, le=THUMB)]


class Numbers(Head):
    query: Place
    key: Place


class Flow(About):
    query: Place
    batch: Place
    residual: Annotated[float, Field(ge=0, le=1)]
    by: Literal["weights", "values"]


ASKS: dict[str, type[About]] = {
    "tile": Tile,
    "row": Row,
    "column": Column,
    "top": Top,
    "thumbs": Thumbs,
    "measures": Entry,
    "proof": Layer,
    "hidden": Head,
    "numbers": Numbers,
    "flow": Flow,
}


def read(what: Any, about: Any) -> About:
    """The question, checked as far as it can be without a trace; `TraceError` in one sentence where it is none.

    >>> read("proof", {"layer": 3})
    Layer(layer=3)
    >>> try:
    ...     read("proof", {"layer": True})
    ... except TraceError as error:
    ...     print(error)
    'proof' was asked with layer = True: input should be a valid integer
    """
    kind = ASKS.get(what) if isinstance(what, str) else None
    if kind is None:
        raise TraceError(f"{short(what)} was asked, but a trace answers {', '.join(ASKS)}")
    if not isinstance(about, dict):
        raise TraceError(f"{what!r} was asked with {short(about)}; give an object with {', '.join(kind.model_fields)}")
    try:
        return kind.model_validate(about)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"]))
    said = first["msg"][:1].lower() + first["msg"][1:]
    if first["type"] == "missing":
        raise TraceError(f"{what!r} was asked without {name}; give {', '.join(kind.model_fields)}")
    raise TraceError(f"{what!r} was asked with {short(name, bare=True)} = {short(first['input'])}: {said}")


def short(given: Any, *, bare: bool = False) -> str:
    """What came, in few enough characters for a sentence."""
    if isinstance(given, int) and abs(given) > MOST:  # thousands of digits would be refused by repr itself
        return "a huge number"
    shown = str(given) if bare else repr(given)
    return shown if len(shown) <= 60 else shown[:60] + "…"
