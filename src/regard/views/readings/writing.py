"""What it costs a model to write: a few tokens after the text, one at a time, counted and timed."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.models.context import max_tokens
from regard.views.readings.language_model import LanguageModel
from regard.views.readings.reading import Objective, WritingCost

Choose = Callable[[Tensor], int]
TIMED = 2  # times; the faster counts


class WritingStep(NamedTuple):
    """One token that was written, and how many positions were computed for it."""

    token: int
    positions: int


@torch.no_grad()
def measure_writing(model: LanguageModel, ids: Sequence[int], objective: Objective, tokens: int) -> WritingCost | None:
    """The cost of `tokens` more; None where the model takes no longer text.

    A model of the next token keeps what it has read: each step computes one position more. A model of masked words
    sees both sides, so that a new token changes all that was computed: each step puts a mask after the text and reads
    everything again.
    """
    limit = max_tokens(model.model, model.tokenizer)
    if tokens < 1 or (limit is not None and len(ids) + tokens + 1 > limit):
        return None
    stem, end = split_ending(model, ids)
    seconds = []
    for _ in range(TIMED):
        started = time.perf_counter()
        writing = write_masked(model, stem, end, tokens) if objective == "masked" else write_next(model, stem, tokens)
        steps = list(writing)
        seconds.append(time.perf_counter() - started)
    return WritingCost(
        tokens=len(steps),
        passes=len(steps),
        positions=sum(step.positions for step in steps),
        seconds=min(seconds),
        cached=objective == "next" and can_keep(model.model),
        text=model.tokens([step.token for step in steps]).text or "",
    )


def split_ending(model: LanguageModel, ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """The ids, and the special ones at their end, such as [SEP], before which more is written."""
    special = model.is_special(ids)
    stop = len(ids)
    while stop > 1 and special[stop - 1]:
        stop -= 1
    return list(ids[:stop]), list(ids[stop:])


def write_next(model: LanguageModel, stem: Sequence[int], tokens: int) -> Iterator[WritingStep]:
    """The likeliest next tokens, by the decoder state of our models, by the cache of `transformers`, or without."""
    prompt, inner = torch.tensor([list(stem)]), model.model
    if not can_keep(inner):
        yield from write_again(model, stem, tokens)
        return
    write = write_with_state if hasattr(inner, "begin") else write_with_library
    for number, token in enumerate(write(inner, prompt, tokens, model.choose)):
        yield WritingStep(token, 1 if number else len(stem))


def can_keep(model: Any) -> bool:
    """Whether a model keeps keys and values of what it has read: one of ours that writes, or one of `transformers`."""
    return hasattr(model, "begin") or hasattr(model, "generate")


def write_with_state(model: Any, prompt: Tensor, tokens: int, choose: Choose) -> Iterator[int]:
    """The likeliest next tokens of a model of ours, with its decoder state."""
    state = model.begin(prompt)
    fed = state.take_prompt(1, tokens)
    for _ in range(tokens):
        token = choose(state(fed)[0])
        yield token
        fed = torch.tensor([[token]])


def write_with_library(model: Any, prompt: Tensor, tokens: int, choose: Choose) -> Iterator[int]:
    """The likeliest next tokens of a model of `transformers`, with its cache."""
    fed, past = prompt, None
    for _ in range(tokens):
        found = model(fed, past_key_values=past, use_cache=True)
        token = choose(found.logits[0, -1])
        yield token
        fed, past = torch.tensor([[token]]), found.past_key_values


def write_again(model: LanguageModel, stem: Sequence[int], tokens: int) -> Iterator[WritingStep]:
    """The likeliest next tokens of a model without a cache: all is read again."""
    ids = list(stem)
    for _ in range(tokens):
        token = model.choose(model.output(torch.tensor([ids]))[0, -1])
        yield WritingStep(token, len(ids))
        ids.append(token)


def write_masked(model: LanguageModel, stem: Sequence[int], end: Sequence[int], tokens: int) -> Iterator[WritingStep]:
    """The likeliest token for a mask after the text, then the same with that token in the text."""
    ids, mask = list(stem), model.mask_id
    assert mask is not None
    for _ in range(tokens):
        fed = [*ids, mask, *end]
        token = model.choose(model.output(torch.tensor([fed]))[0, len(ids)])
        yield WritingStep(token, len(fed))
        ids.append(token)
