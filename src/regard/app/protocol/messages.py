"""The messages between a page and the server, as pydantic models; `web/src/hosts/messages.ts` is made from them.

What a page sends is checked field by field. What the server sends leaves out the fields that were not set.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.app.protocol.limits import NAME, STEPS
from regard.errors import RegardError

RunStep = Literal["waiting", "loading", "translating", "summarising"]  # what is done before a model is watched


class PageMessage(BaseModel):
    """What a page sends: nothing is bent to fit, and what is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ServerMessage(BaseModel):
    """What the server sends."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the fields that were not set."""
        return self.model_dump(by_alias=True, exclude_unset=True)


# From a page


class EditSpec(PageMessage):
    """One change of the attention."""

    kind: Literal["mute", "block", "uniform", "scale"]
    layer: int = Field(ge=0, le=100_000, description="counts the layers of the trace")
    heads: list[int] | None = Field(default=None, max_length=4096, description="null: all")
    query: int | None = Field(default=None, ge=0)
    key: int | None = Field(default=None, ge=0)
    factor: float | None = Field(default=None, allow_inf_nan=False)


class RunRequest(PageMessage):
    """A model, and what it should read."""

    model: str = Field(max_length=500)
    text: str
    steps: int = Field(default=0, ge=0, le=STEPS, description="tokens to write at most; 0: only read")
    temperature: float = Field(default=0.0, ge=0, le=100, allow_inf_nan=False, description="0: the likeliest token")
    edits: list[EditSpec] = Field(default_factory=list, max_length=256)
    picture: str | None = Field(default=None, description="a data: address, for models that read pictures")


class EditRequest(PageMessage):
    """Edits under which a trace's run is made again."""

    edits: list[EditSpec] = Field(min_length=1, max_length=256)


class RenameRequest(PageMessage):
    """Another name for a trace."""

    name: str = Field(min_length=1, max_length=NAME)


# What there is


class ModelInfo(ServerMessage):
    """A model that can run."""

    name: str
    about: str
    reads: Literal["text", "pair", "picture", "numbers"] = Field(description="pair: a text that it writes another for")
    writes: Literal["text"] | None = Field(description="null: it only reads")
    tasks: list[Literal["generate", "translate", "summarise", "read", "see"]] = Field(
        description="the first is what it is made for"
    )
    example: str = Field(description="a text that shows it well")


class TraceCard(ServerMessage):
    """A trace that the server keeps."""

    id: str
    name: str
    model: str
    text: str
    made: str = Field(description="ISO time")


class BestStep(ServerMessage):
    """The best of the scores that decide which weights are kept."""

    score: str
    value: float
    step: int


class TrainingCard(ServerMessage):
    """A training run: how far it is, its curves, and the steps whose maps can be looked at."""

    id: str
    name: str
    task: str
    state: Literal["running", "finished", "stopped", "failed"]
    step: int = Field(description="the last one that was made")
    total: int = Field(description="how many steps there will be")
    best: BestStep | None = Field(description="null: none yet, or unknown which score decides")
    steps: list[int] = Field(description="those with maps")
    examples: int
    losses: list[tuple[int, float]] = Field(description="step and training loss")
    scores: dict[str, list[tuple[int, float]]] = Field(description="of the validations")
    speeds: list[tuple[int, float]] = Field(description="tokens per second of training")
    seconds: float = Field(description="that it took so far")
    ends: int | None = Field(description="when it will be over, in seconds since 1970; null unless it runs")
    settings: dict[str, str]


class TraceLink(ServerMessage):
    """The id under which a trace can be opened."""

    trace: str


# What came out


class Probability(ServerMessage):
    """A token or a class, and its probability."""

    name: str
    share: float


class ModelOutput(ServerMessage):
    """What the model gave: a text that it wrote, the next tokens, a masked token, or classes; strongest first."""

    text: str | None
    next: list[Probability] | None
    classes: list[Probability] | None
    masked: list[Probability] | None = Field(default=None, description="of the first masked token")


class ShownGlimpses(ServerMessage):
    """Where a model looked that sees a few squares of a picture, one after the other."""

    size: int = Field(description="pixels of the smallest square in either direction; each scale doubles it")
    scales: int
    places: list[tuple[int, int]] = Field(description="row and column of the middle of each, in pixels")


class ShownPicture(ServerMessage):
    """The picture that patches were cut from."""

    address: str = Field(description="a data: or blob: address")
    width: int
    height: int
    glimpses: ShownGlimpses | None = None


class EditEffect(ServerMessage):
    """What a run gave before and after edits."""

    before: list[Probability]
    after: list[Probability]
    before_text: str | None = Field(serialization_alias="beforeText")
    after_text: str | None = Field(serialization_alias="afterText")
    kl: float | None = Field(description="KL divergence in nats, mean over the positions")
    trace: str = Field(description="the edited run")


# While a model runs


class ProgressEvent(ServerMessage):
    """What is being done. `step` and `name` say it for those who read another language."""

    kind: Literal["progress"]
    text: str
    share: float | None = Field(description="how much of it is done, where that is known")
    step: RunStep
    name: str = Field(default="", description="of the model that is loaded")


class TokenEvent(ServerMessage):
    """A token that was written, as the text that it adds."""

    kind: Literal["token"]
    text: str
    number: int
    of: int


class RowsEvent(ServerMessage):
    """What was seen so far can be opened under this id."""

    kind: Literal["rows"]
    trace: str


class DoneEvent(ServerMessage):
    """The run is over, and kept."""

    kind: Literal["done"]
    trace: str
    text: str | None


class TroubleEvent(ServerMessage):
    """What went wrong beside the run, which goes on."""

    kind: Literal["trouble"]
    text: str
    code: str = ""
    about: dict[str, str | int | float] = {}


class FailedEvent(ServerMessage):
    """The run failed, and why."""

    kind: Literal["failed"]
    text: str
    code: str = ""
    about: dict[str, str | int | float] = {}


class ErrorAnswer(ServerMessage):
    """A request that was refused: one sentence, and its code where there is one."""

    error: str
    code: str = ""
    about: dict[str, str | int | float] = {}


RunEvent = ProgressEvent | TokenEvent | RowsEvent | DoneEvent | TroubleEvent | FailedEvent


def describe_error(error: RegardError) -> dict[str, Any]:
    """The code of an error and the values that its sentence names, where there is one."""
    if not error.code:
        return {}
    about = {name: value if isinstance(value, str | int | float) else str(value) for name, value in error.about.items()}
    return {"code": error.code, "about": about}
