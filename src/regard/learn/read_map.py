"""A real map for a lesson: an embedded model reads the text, and one layer of its trace is handed on."""

from functools import cache
from typing import Any, NamedTuple

import torch

from regard.learn.parts import ModelMap
from regard.models.open.open_model import open_model
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.trace.watch import watch
from regard.views.static.trace_parts import choose


class LessonMap(NamedTuple):
    """The trace of one reading, the layer that the lesson shows, and what the model wrote, if it writes."""

    trace: Trace
    layer: Layer
    written: str = ""


@cache
def read_map(wanted: ModelMap) -> LessonMap:
    """Let the model read the text, and choose the layer.

    >>> found = read_map(ModelMap("induction", "A B C A B", "blocks.1", 0))
    >>> found.layer.name, found.layer.weights.shape[-2:]
    ('blocks.1.attention', (5, 5))
    """
    trace, written = watch_reading(wanted)
    return LessonMap(trace, choose(trace, wanted.layer), written)


def watch_reading(wanted: ModelMap) -> tuple[Trace, str]:
    if wanted.model.startswith("en-zh"):
        from regard.tasks.text_translator import open_translator

        one = open_translator(wanted.model).translate([wanted.text])[0]
        return one.trace(), one.text
    model, tokenizer = open_model(wanted.model)
    ids = torch.tensor([encode_text(tokenizer, wanted)])
    with torch.no_grad(), watch(model, tokenizer) as trace:
        model(ids)
    return trace, ""


def encode_text(tokenizer: Any, wanted: ModelMap) -> list[int]:
    """The ids that the model reads; a question comes before the text that answers it."""
    pair = () if wanted.question is None else (wanted.text,)
    encoded = tokenizer.encode(wanted.question if pair else wanted.text, *pair)
    ids: list[int] = getattr(encoded, "ids", encoded)
    return ids
