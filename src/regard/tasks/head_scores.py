"""How well a model continues what repeats, and which of its heads do what that takes (Olsson et al. 2022)."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.map import AttentionMap
from regard.data import repeats
from regard.layers import listen

TEST_SEED = 1_000_003  # of sequences that no training sees
DIGITS = 6  # of a score


@torch.no_grad()
def accuracy(model: nn.Module, *, length: int, vocabulary: int, rows: int = 96, clean: bool = False) -> float:
    """The share of the tokens that could be known which the model holds likeliest, over `rows` unseen sequences."""
    ids, known = repeats.batch(range(rows), length=length, vocabulary=vocabulary, seed=TEST_SEED, clean=clean)
    right = model(ids[:, :-1]).argmax(-1) == ids[:, 1:]  # b t
    return round(float(right[known[:, 1:]].double().mean()), DIGITS)


@torch.no_grad()
def head_scores(model: nn.Module, *, period: int, vocabulary: int, rows: int = 24) -> dict[str, list[list[float]]]:
    """For each layer and head, two shares, over `rows` random strings of `period` different tokens, said twice.

    "previous" is the weight on the token before, mean over all tokens but the first. "induction" is the weight on the
    token that came after the same token the first time, mean over the second time.
    """
    with listen() as heard:
        model(said_twice(period, vocabulary, rows))
    maps = [attended.weights for _, attended in heard]
    return {
        "previous": [along(one, range(1, 2 * period), 1) for one in maps],
        "induction": [along(one, range(period, 2 * period), period - 1) for one in maps],
    }


def said_twice(period: int, vocabulary: int, rows: int) -> Int[Tensor, "b t"]:
    """Random strings of different tokens, each followed by itself."""
    rng = np.random.default_rng((TEST_SEED, period))
    once = np.stack([rng.permutation(vocabulary)[:period] for _ in range(rows)])
    return torch.from_numpy(np.tile(once, 2))


def along(weights: AttentionMap, queries: range, back: int) -> list[float]:
    """The mean weight of each head on the key that stands so far back, over these queries."""
    cells: list[Float[Tensor, "b h"]] = [weights[:, :, i, i - back] for i in queries]
    return [round(share, DIGITS) for share in torch.stack(cells).double().mean((0, 1)).tolist()]
