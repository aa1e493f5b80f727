"""Captions as they are written and watched: what a decoder is fed, what it says, and where it looked for each word."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observe import muted
from regard.data.special import BEGIN, END, PAD, SPECIAL
from regard.data.vocabulary import Vocabulary
from regard.decode import DecodedText, Limits, beam, greedy
from regard.models.captioner import Captioner
from regard.tokens import Tokens, patches
from regard.trace.record.trace import Trace
from regard.trace.watch import watch


def pad_captions(ids: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "b t"], Int[Tensor, "b t"]]:
    """What a decoder is fed, and what it must say, of captions with END at their end.

    >>> pad_captions([[5, 2], [7, 8, 2]])[0].tolist()
    [[1, 5, 0], [1, 7, 8]]
    """
    longest = max(map(len, ids))
    targets = torch.tensor([[*one, *[PAD] * (longest - len(one))] for one in ids])
    fed = torch.tensor([[BEGIN, *one[:-1], *[PAD] * (longest - len(one))] for one in ids])
    return fed, targets


@torch.inference_mode()
def write_captions(
    model: Captioner, pictures: Float[Tensor, "b c y x"], *, beams: int = 1, longest: int = 40, **more: Any
) -> list[DecodedText]:
    """What the model writes for each picture, at most `longest` tokens."""
    limits = Limits(longest=longest, begin=BEGIN, end=END, never=(PAD, BEGIN))
    with muted():  # who watches is told of all that was written, in one pass
        steps = model.begin(pictures)
    if beams == 1:
        return greedy(steps, len(pictures), limits=limits)
    return [one[0] for one in beam(steps, len(pictures), beams=beams, limits=limits, **more)]


@torch.no_grad()
def trace_caption(
    model: Captioner, picture: Float[Tensor, "1 c y x"], written: Sequence[int], vocabulary: Vocabulary
) -> Trace:
    """Where the model looks while it writes a caption, in one pass."""
    with watch(model) as trace:
        model(picture, torch.tensor([[BEGIN, *written]], device=picture.device))
    height, width = (side // model.config.stride for side in picture.shape[-2:])
    name_caption(trace, vocabulary.names(written), (height, width))
    return trace


def name_caption(trace: Trace, words: Sequence[str], grid: tuple[int, int]) -> None:
    """Rows are the words and the end, columns the locations of the picture."""
    rows = Tokens((*words, SPECIAL[END]), special=(*(word in SPECIAL for word in words), True))
    for layer in trace.layers:
        layer.queries, layer.keys = (rows,), (patches(*grid),)
