"""How probable a model finds each token of a text: from the left alone, or with that token masked."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.views.readings.language_model import LanguageModel
from regard.views.readings.reading import Guess, LikelyToken

TOP = 5
ROWS = 32  # masked copies of a text that are read at once


def guess_next(model: LanguageModel, ids: Sequence[int], logits: Float[Tensor, "t n"]) -> list[Guess | None]:
    """A guess for each token from what stands before it, $p(x_i | x_{<i})$: none for the first, and for special ones.

    `logits` are those of one pass over the text: row i − 1 is about token i.
    """
    special = model.is_special(ids)
    return [
        None if at == 0 or special[at] else make_guess(model, logits[at - 1], token) for at, token in enumerate(ids)
    ]


def guess_masked(model: LanguageModel, ids: Sequence[int], mask_id: int) -> list[Guess | None]:
    """A guess for each token from all others, $p(x_i | x_{\\setminus i})$: it is masked and the text read again.

    Their mean log-probability is the pseudo-log-likelihood of the text per token (Salazar et al. 2020, eq. 1).
    """
    places = [at for at, special in enumerate(model.is_special(ids)) if not special]
    guesses: list[Guess | None] = [None] * len(ids)
    for first in range(0, len(places), ROWS):
        some = places[first : first + ROWS]
        rows = torch.tensor([list(ids)] * len(some))
        rows[torch.arange(len(some)), some] = mask_id
        logits = model.output(rows)
        for row, at in enumerate(some):
            guesses[at] = make_guess(model, logits[row, at], ids[at])
    return guesses


def make_guess(model: LanguageModel, logits: Float[Tensor, " n"], real: int) -> Guess:
    """The probability and rank of the real token, and the likeliest ones."""
    log_probs = logits.double().log_softmax(-1)
    best = log_probs.topk(min(TOP, len(log_probs)))
    names = [model.tokens([token]).shown[0] for token in best.indices.tolist()]
    return Guess(
        log_prob=float(log_probs[real]),
        rank=1 + int((log_probs > log_probs[real]).sum()),
        top=[LikelyToken(name=name, share=share) for name, share in zip(names, best.values.exp().tolist())],
    )


def mean_log_prob(guesses: Sequence[Guess | None]) -> float | None:
    """The mean over the guesses that there are; None where there is none.

    >>> mean_log_prob([None, Guess(log_prob=-1.0, rank=1, top=[]), Guess(log_prob=-2.0, rank=3, top=[])])
    -1.5
    """
    found = [guess.log_prob for guess in guesses if guess is not None]
    return sum(found) / len(found) if found else None
