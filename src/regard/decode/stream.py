"""Tokens one by one, as they are chosen, for whoever shows them live."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from regard.decode.limits import Limits, make_first_ids
from regard.decode.log_probs import list_banned
from regard.decode.sample import check_sampling
from regard.models.decoder_state import DecoderState


@torch.no_grad()
def stream(
    steps: DecoderState,
    rows: int,
    *,
    temperature: float | int = 0,
    generator: Generator | None = None,
    limits: Limits,
) -> Iterator[Int[Tensor, " b"]]:
    """The next token of every row, (b,), again and again: the likeliest, or drawn where `temperature` is above 0.

    Drawing takes from softmax(logits / temperature) by `torch.multinomial` and `generator`, or torch's own. A row that
    has said END says it again until all rows have; after the longest of `limits` a row stops without END. The last
    token that is yielded has not been read: `steps(token[:, None])` gives the logits of what would come after it.
    Whoever watches the model hears each step as it is made.

    >>> from regard.models import embedded
    >>> model, words = embedded.load("induction"), embedded.tokenizer("induction")
    >>> steps = model.begin(torch.tensor([words.encode("the cat sees A B C . the")]))
    >>> words.decode([int(token) for token in stream(steps, 1, limits=Limits(longest=5, end=None))])
    'cat sees A B C'
    """
    check_sampling(temperature, None, None, None)
    ids, ended = make_first_ids(steps, rows, limits), None
    for said in range(limits.most):
        logits = steps(ids)
        if not said:
            limits.check(logits.shape[-1])
        allowed = logits.index_fill(-1, list_banned(limits, said, logits.device), -torch.inf)
        token = choose(allowed, temperature, generator)
        if limits.end is not None:
            token = token if ended is None else token.where(~ended, limits.end)
            ended = token == limits.end
        yield token
        if ended is not None and bool(ended.all()):
            return
        ids = token[:, None]


def choose(logits: Float[Tensor, "b n"], temperature: float | int, generator: Generator | None) -> Int[Tensor, " b"]:
    """One token per row: the likeliest, or one drawn from softmax(logits / temperature)."""
    if not temperature:
        return logits.argmax(-1)
    return torch.multinomial((logits.float() / temperature).softmax(-1), 1, generator=generator)[:, 0]
