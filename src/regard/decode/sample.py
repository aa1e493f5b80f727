"""A token drawn by its probability, again and again."""

import torch

from regard.decode.choice import Generators, make_choice
from regard.decode.decoded import DecodedText
from regard.decode.limits import Limits
from regard.decode.single import write
from regard.models.decoder_state import DecoderState


@torch.no_grad()
def sample(
    steps: DecoderState,
    rows: int,
    *,
    temperature: float | int = 1.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    repetition_penalty: float | int = 1.0,
    generator: Generators = None,
    limits: Limits,
) -> list[DecodedText]:
    """For each of the `rows` texts that `steps` is in the middle of, tokens drawn by their probability until it ends.

    The logits of what a row holds already are lowered by `repetition_penalty` (Keskar et al. 2019; 1 lowers nothing).
    All are divided by `temperature` (0 says the likeliest, as `greedy`), then the `top_k` likeliest stay, of
    those the fewest that reach probability `top_p` together, of those what is at least `min_p` times as likely as the
    likeliest, in that order; from what is left a token is drawn. Scores are those of the model itself.

    One random number in [0, 1) is taken per token, and the first token at which the running sum of probabilities
    exceeds it is said. One `generator` (or torch's own) deals numbers to the rows that are still written, in their
    order. With one generator per row each text depends on its own alone, so a batch gives what single texts give.

    >>> import torch
    >>> class Dice:  # 3 to 8, equally likely
    ...     def __call__(self, ids):
    ...         return torch.zeros(len(ids), 9).index_fill(1, torch.tensor([0, 1, 2]), -torch.inf)
    ...     def reorder(self, index):
    ...         pass
    ...     def attention(self):
    ...         return None
    >>> generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    >>> [text.ids for text in sample(Dice(), 2, generator=generators, limits=Limits(longest=5))]
    [[8, 7, 5, 8, 6], [3, 4, 4, 4, 6]]
    """
    choose = make_choice(rows, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, generator=generator)
    return write(steps, rows, limits, choose, repetition_penalty=repetition_penalty)
