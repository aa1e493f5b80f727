"""The words of a trace file: what its JSON manifest says, and of which kind each word is.

Arrays are named here and stand in the file; `None` means that there is none. Version 2, in which
every byte of the file has a digest (`digests.py`).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.errors import TraceError

VERSION = 2

Count = Annotated[int, Field(ge=0, lt=1 << 53)]  # what JavaScript can count
Whole = Annotated[int, Field(ge=-(1 << 63), lt=1 << 64)]
Pair = Annotated[list[Count], Field(min_length=2, max_length=2)]
Share = Annotated[float, Field(ge=0, le=1)]
Array = str  # the name of an array
State = Literal[  # of `LayerState`
    "padding_rows_empty",
    "padding_rows_skipped",
    "parts_of_picture",
    "windows",
    "axes_unknown",
    "channels",
    "keys_changed",
    "compared_by_output",
]


class Words(BaseModel):
    """Strict: no word that is not known, no text where a number is wanted, no NaN."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class TokensWords(Words):
    """One sequence of tokens; each list has one entry per token."""

    shown: list[str]
    ids: list[Whole] | None = None
    offsets: list[Pair | None] | None = None
    special: list[bool] | None = None
    words: list[Whole | None] | None = None
    text: str | None = None
    grid: Pair | None = None


class MaskWords(Words):
    """One run of keys per row: `start` and `stop`, (b|1, h|1, q|1); or `bits`, (b|1, h|1, q|1, ⌈k / 8⌉)."""

    start: Array | None = None
    stop: Array | None = None
    bits: Array | None = None


class BiasWords(Words):
    """A `tensor`, (b|1, h|1, q|1, k|1); or `diagonals`, (h|1, q + k − 1), for key − query from 1 − q on."""

    tensor: Array | None = None
    diagonals: Array | None = None


class PartWords(Words):
    """Some rows of a map and the columns they were computed with; q and k decide them, or `weights` are stored."""

    rows: Pair
    columns: Pair
    q: Array | None = None  # b|1 h|1 q d
    k: Array | None = None  # b|1 g k d
    scale: float = 1.0
    softcap: Annotated[float, Field(gt=0)] | None = None
    sink: Array | None = None  # b|1 h|1 q|1 1
    weigh: Literal["softmax", "even"] = "softmax"  # even: a row that sees nothing is uniform rather than 0
    mask: MaskWords | None = None
    bias: BiasWords | None = None
    weights: Array | None = None  # b h q k


class SeenWords(Words):
    """What was copied while the kernel ran, for a few rows."""

    rows: list[Count] = []
    mix: Array | None = None
    allowed: Array | None = None
    weights: Array | None = None
    causal: bool = False
    scale: float | None = None
    dropout: Share = 0.0
    keys: Count | None = None


class DroppedWords(Words):
    """How the call dropped weights."""

    p: Share
    seed: Whole | None = None


class PlaceWords(Words):
    """Where windows stand on a whole of `size` positions; −1 is no position of it. `names` are numbers of `tokens`."""

    entries: Array  # b w: numbers of the layer's own batch entries
    rows: Array  # w q
    columns: Array  # w k
    size: Annotated[int, Field(ge=1, lt=1 << 53)]
    grid: Pair | None = None
    names: list[Count] | None = None


class LayerWords(Words):
    """One attention layer. `queries` and `keys` are numbers of `tokens` in the manifest, one per batch entry."""

    name: str
    kind: str
    door: str = ""
    shape: Annotated[list[Count], Field(min_length=4, max_length=4)]  # b h q k
    parts: Annotated[list[PartWords], Field(min_length=1)]
    q: Array | None = None
    k: Array | None = None
    v: Array | None = None
    gradient: Array | None = None
    queries: list[Count] | None = None
    keys: list[Count] | None = None
    seen: SeenWords | None = None
    place: PlaceWords | None = None
    dropped: DroppedWords | None = None
    notes: list[str] = []
    states: list[State] = []
    doubts: list[str] = []  # why the map counts as unverified, whatever its numbers say
    edits: list[str] = []  # what was changed about it


class RefusedWords(Words):
    """A layer that has no map, and why."""

    name: str
    why: str


class MissedWords(Words):
    """Attention that ran and was not heard: where, what it looked like, how often."""

    name: str
    what: str
    count: Annotated[int, Field(ge=1, lt=1 << 53)] = 1


class RunWords(Words):
    """One call of the model."""

    layers: list[LayerWords] = []
    notes: list[str] = []
    refused: list[RefusedWords] = []
    missed: list[MissedWords] = []
    edits: list[str] = []  # what was changed about the model


class Manifest(Words):
    """All that a trace file says in words."""

    version: Literal[2] = 2
    model: str = ""
    fingerprint: str = ""
    tokens: list[TokensWords] = []
    runs: list[RunWords] = []
    notes: list[str] = []


def manifest_of(path: Path, words: Any) -> Manifest:
    """The manifest, once every word of it was found to be of its kind."""
    version = words.get("version") if isinstance(words, dict) else None
    if type(version) is not int:
        raise TraceError(
            f"{path} holds a manifest without a version, so it is no trace; give a file from trace.save"
        ).with_code("file.bare")
    if version != VERSION:
        raise TraceError(
            f"{path} is a trace of version {version}, but this regard reads version {VERSION}; "
            f"{'update regard' if version > VERSION else 'write it again with this one'}"
        ).with_code("file.newer" if version > VERSION else "file.older", version=version, known=VERSION)
    try:
        return Manifest.model_validate(words)
    except (ValidationError, RecursionError) as error:
        first = error.errors(include_url=False, include_input=False)[0] if isinstance(error, ValidationError) else None
        where = ".".join(map(str, first["loc"])) if first else "its manifest"
        why = first["msg"] if first else "nested too deeply"
        raise TraceError(f"{path} says something wrong at {where:.120}: {why:.120}; it is damaged").with_code(
            "file.damaged", where=f"{where:.120}"
        ) from error
