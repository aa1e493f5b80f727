"""The likeliest token, again and again."""

import torch

from regard.decode.choice import choose_likeliest
from regard.decode.decoded import DecodedText
from regard.decode.limits import Limits
from regard.decode.single import write
from regard.models.decoder_state import DecoderState


@torch.no_grad()
def greedy(
    steps: DecoderState, rows: int, *, repetition_penalty: float | int = 1.0, limits: Limits
) -> list[DecodedText]:
    """For each of the `rows` texts that `steps` is in the middle of, the likeliest token until it ends.

    Of equally likely tokens the lowest id is said; `repetition_penalty` is that of `regard.sample`. A row that has
    ended leaves the batch, and its model's state with it, so that work shrinks. `steps` is used up.

    >>> import torch
    >>> class Counting:  # says the number after the last
    ...     def __call__(self, ids):
    ...         return -9.0 * (torch.arange(8) != ids[:, -1:] + 1)
    ...     def reorder(self, index):
    ...         pass
    ...     def attention(self):
    ...         return None
    >>> greedy(Counting(), 2, limits=Limits(longest=[4, 2], begin=3, end=7))[0].ids
    [4, 5, 6]
    """
    return write(steps, rows, limits, choose_likeliest, repetition_penalty=repetition_penalty)
