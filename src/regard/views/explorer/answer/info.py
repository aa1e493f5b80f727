"""All that is known of a run before a number of it is asked."""

from collections.abc import Sequence
from typing import Any

from regard.tokens import Tokens
from regard.trace.file.array import unread
from regard.trace.measure.stacks import in_decoder
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run


class TokenNumbers:
    """The token sequences of a run, each once, and their numbers."""

    def __init__(self, run: Run) -> None:
        self.numbers: dict[Tokens, int] = {}
        for layer in run.layers:
            for tokens in (*(layer.queries or ()), *(layer.keys or ())):
                self.numbers.setdefault(tokens, len(self.numbers))

    def all(self, tokens: tuple[Tokens, ...] | None) -> list[int] | None:
        return None if tokens is None else [self.numbers[one] for one in tokens]

    def number(self, tokens: tuple[Tokens, ...] | None, batch: int) -> int:
        """The number of one sequence; −1 where it is not known."""
        return -1 if tokens is None else self.numbers[tokens[batch]]

    def describe(self) -> list[dict[str, Any]]:
        return [describe_tokens(tokens) for tokens in self.numbers]


def describe_tokens(tokens: Tokens) -> dict[str, Any]:
    """One sequence for JSON; half a surrogate pair stays what it is, so the JSON must be written in ASCII."""
    return {
        "shown": list(tokens.shown),
        "ids": None if tokens.ids is None else [int(one) for one in tokens.ids],
        "offsets": None
        if tokens.offsets is None
        else [None if one is None else [int(one[0]), int(one[1])] for one in tokens.offsets],
        "special": None if tokens.special is None else [bool(one) for one in tokens.special],
        "words": None if tokens.words is None else [None if one is None else int(one) for one in tokens.words],
        "text": tokens.text,
        "grid": None if tokens.grid is None else [int(size) for size in tokens.grid],
    }


def describe_layer(layer: Layer, side: str, named: TokenNumbers) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "side": side,
        "how": layer.weights.kind,
        "shape": [int(size) for size in layer.weights.shape],
        "queries": named.all(layer.queries),
        "keys": named.all(layer.keys),
        "scores": bool(layer.weights.source.pieces()),
        "values": layer.v is not None,
        "notes": layer.sentences(),
        "states": list(layer.states),
        "edits": list(layer.edits),
    }


def sides_of(layers: Sequence[Layer]) -> list[str]:
    """Where each layer stands in an encoder–decoder; nothing where there is no cross-attention."""
    ours = in_decoder(layers)
    return ["decoder" if our else "encoder" for our in ours] if any(ours) else [""] * len(layers)


def precision_of(layers: Sequence[Layer]) -> str:
    """What the numbers are held in: "float32", "bfloat16", …"""
    for layer in layers:
        q = unread(layer, "q")
        held = layer.weights.source.precision or (None if q is None else q.dtype)
        if held is not None:
            return str(held).removeprefix("torch.")
    return "float32"
