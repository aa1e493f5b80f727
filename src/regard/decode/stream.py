"""Tokens one by one, as they are chosen, for whoever shows them live."""

from regard.decode.choice import Generators, make_choice
from regard.decode.limits import Limits
from regard.decode.token_iterator import TokenIterator
from regard.models.decoder_state import DecoderState


def stream(
    steps: DecoderState,
    rows: int,
    *,
    temperature: float | int = 0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    repetition_penalty: float | int = 1.0,
    generator: Generators = None,
    alternatives: int = 0,
    limits: Limits,
) -> TokenIterator:
    """The next token of every row, again and again: the likeliest, or drawn where `temperature` is above 0.

    The settings are those of `regard.sample`, and the same generators give the same texts. Each step says which rows
    it is of, their tokens, their log-probabilities, and the `alternatives` likeliest tokens where these are asked for.
    A row that has said END, or is as long as `limits` allow, is in no further step; `.stop(rows)` ends others. The last
    token has not been read: `steps(tokens[:, None])` gives the logits of what would come after it. Whoever watches the
    model hears each step as it is made.

    >>> import torch
    >>> from regard.models import embedded
    >>> model, words = embedded.load("induction"), embedded.tokenizer("induction")
    >>> steps = model.begin(torch.tensor([words.encode("the cat sees A B C . the")]))
    >>> said = stream(steps, 1, alternatives=2, limits=Limits(longest=3, end=None))
    >>> for step in said:
    ...     print(words.decode(step.tokens.tolist()), words.names(step.alternatives.ids[0].tolist()))
    cat ['cat', 'and']
    sees ['sees', 'Y']
    A ['A', 'map']
    """
    choose = make_choice(rows, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, generator=generator)
    return TokenIterator(steps, rows, limits, choose, repetition_penalty=repetition_penalty, alternatives=alternatives)
