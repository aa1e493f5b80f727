"""How much is taken at once; whoever sends more reads how much it was and how much may be."""

from typing import Any

from regard.app.protocol.refusal import Refusal

ASK = 64 << 10  # bytes of one question
RUN = 1 << 20  # bytes of what asks for a run: it may hold a picture
UPLOAD = 256 << 20  # bytes of a trace
TEXT = 100_000  # characters
NAME = 200  # characters of a trace's name
STEPS = 512  # tokens that a model writes at most
SECONDS = 300.0  # that a model writes at most
WAITING = 16  # runs that wait for the model at most
ANSWER = 120.0  # seconds that one answer about a trace takes at most
CELLS = 1 << 37  # weights that are measured at once: no processor gets through more of them in that time


def size(count: int) -> str:
    """Bytes as people say them.

    >>> size(65536), size(3 << 20)
    ('64 kB', '3 MB')
    """
    return f"{count / (1 << 20):.3g} MB" if count >= 1 << 20 else f"{max(1, round(count / 1024))} kB"


def too_large(came: int | None, most: int, what: str) -> Refusal:
    amount = "more" if came is None else size(came)
    refused = Refusal(f"{what} has {amount}, but at most {size(most)} are taken; send less", 413)
    if came is None:
        return refused.with_code("sent.large", limit=size(most))
    return refused.with_code("sent.larger", size=amount, limit=size(most))


def stated_length(headers: Any) -> int | None:
    """The length that a request says it has; None where it says nothing that is a number."""
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() else None


async def body_of(request: Any, most: int = ASK) -> bytes:
    """The body of a request; what is too long is refused before it is all read, whatever its header says."""
    length = stated_length(request.headers)
    if length is not None and length > most:
        raise too_large(length, most, "what was sent")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise too_large(None, most, "what was sent")
    return bytes(body)


def must_be_measurable(name: str, cells: int) -> None:
    """Refuse to measure a layer of so many weights, before a thread is held for it."""
    if cells > CELLS:
        raise Refusal(
            f"{name} has {cells:.3g} weights, too many to measure here; measure it in Python with trace.summary()", 413
        ).with_code("trace.large", layer=name, cells=f"{cells:.3g}")


def must_be_short(text: str) -> None:
    """Refuse a text that is longer than anything here reads."""
    if len(text) > TEXT:
        raise Refusal(
            f"the text has {len(text):,} characters, but at most {TEXT:,} are read at once; shorten it"
        ).with_code("text.characters", characters=len(text), limit=TEXT)


def must_fit(tokens: int, most: int | None, model: str, steps: int = 0) -> None:
    """Refuse a text that is longer than a model reads, with both numbers."""
    if most is None or tokens + steps <= most:
        return
    if tokens > most or not steps:
        raise Refusal(f"the text has {tokens:,} tokens, but {model} reads at most {most:,}; shorten it").with_code(
            "text.long", tokens=tokens, limit=most, model=model
        )
    raise Refusal(
        f"the text has {tokens:,} tokens and {steps:,} more were asked for, but {model} reads at most {most:,}; "
        f"ask for at most {most - tokens:,}, or shorten the text"
    ).with_code("text.steps", tokens=tokens, steps=steps, limit=most, rest=most - tokens, model=model)
