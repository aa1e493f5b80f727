"""What comes from a browser, checked; names as in web/src/hosts/server.ts."""

import json
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from regard.app.protocol.limits import NAME, STEPS
from regard.app.protocol.refusal import Refusal


class Wire(BaseModel):
    """Nothing is bent to fit, and what is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EditOf(Wire):
    """One change of the attention. `layer` counts the layers of the trace."""

    kind: Literal["mute", "block", "uniform", "scale"]
    layer: int = Field(ge=0, le=100_000)
    heads: list[int] | None = Field(default=None, max_length=4096)
    query: int | None = Field(default=None, ge=0)
    key: int | None = Field(default=None, ge=0)
    factor: float | None = Field(default=None, allow_inf_nan=False)


class RunAsk(Wire):
    """A model, and what it should read."""

    model: str = Field(max_length=500)
    text: str
    steps: int = Field(default=0, ge=0, le=STEPS)
    temperature: float = Field(default=0.0, ge=0, le=100, allow_inf_nan=False)
    edits: list[EditOf] = Field(default_factory=list, max_length=256)
    picture: str | None = None


class EditAsk(Wire):
    """Changes to run again with."""

    edits: list[EditOf] = Field(min_length=1, max_length=256)


class NameAsk(Wire):
    """Another name for a trace."""

    name: str = Field(min_length=1, max_length=NAME)


Asked = TypeVar("Asked", bound=Wire)


def read(kind: type[Asked], data: bytes | str) -> Asked:
    """What was sent, as this kind; the first thing that is wrong with it is said in one sentence."""
    try:
        return kind.model_validate(json_of(data))
    except ValidationError as error:
        sentence = said(error.errors(include_url=False)[0])
        raise Refusal(sentence, 422).coded("sent.wrong", why=sentence) from None


def said(fault: Any) -> str:
    """One fault in one sentence: what came, and what may be."""
    where = ".".join(str(part) for part in fault["loc"]) or "what was sent"
    came, limits = fault.get("input"), fault.get("ctx") or {}
    if "le" in limits or "ge" in limits:
        most, least = limits.get("le"), limits.get("ge")
        wanted = f"at most {most:,} is taken" if most is not None else f"at least {least:,} is wanted"
        return f"{where} is {came:,}, but {wanted}; give another number"
    if "max_length" in limits and hasattr(came, "__len__"):
        return f"{where} has a length of {len(came):,}, but at most {limits['max_length']:,} is taken; shorten it"
    return f"{where} cannot be taken: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def json_of(data: bytes | str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Refusal("what was sent is no JSON; send a JSON object").coded("sent.odd") from None
    if not isinstance(found, dict):
        raise Refusal("what was sent is no JSON object; send one").coded("sent.odd")
    return found


def answer(found: Any, status: int = 200) -> Response:
    """JSON in plain ASCII: a lone surrogate in a token gets through as itself."""
    return Response(json.dumps(found, allow_nan=False), status, media_type="application/json")
