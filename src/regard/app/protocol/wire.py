"""JSON from a browser, checked, and JSON for it."""

import json
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.responses import Response

from regard.app.protocol.messages import ErrorAnswer, PageMessage, ServerMessage, describe_error
from regard.app.protocol.refusal import Refusal
from regard.errors import RegardError

Message = TypeVar("Message", bound=PageMessage)


def parse(kind: type[Message], data: bytes | str) -> Message:
    """What was sent, as this kind of message; the first thing that is wrong with it is said in one sentence."""
    try:
        return kind.model_validate(parse_object(data))
    except ValidationError as error:
        sentence = describe_fault(error.errors(include_url=False)[0])
        raise Refusal(sentence, 422).with_code("sent.wrong", why=sentence) from None


def describe_fault(fault: Any) -> str:
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


def parse_object(data: bytes | str) -> dict[str, Any]:
    """A JSON object."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        raise Refusal("what was sent is no JSON; send a JSON object").with_code("sent.odd") from None
    if not isinstance(parsed, dict):
        raise Refusal("what was sent is no JSON object; send one").with_code("sent.odd")
    return parsed


def respond(message: Any, status: int = 200) -> Response:
    """A message, several, or plain values as JSON in ASCII: a lone surrogate in a token gets through as itself."""
    return Response(
        json.dumps(message, allow_nan=False, default=ServerMessage.to_json), status, media_type="application/json"
    )


def respond_error(error: RegardError, status: int) -> Response:
    """A refused request as JSON: its sentence, and its code where it has one."""
    return respond(ErrorAnswer(error=str(error), **describe_error(error)), status)
