"""Contrastive learning: among all texts of a batch, find the partner (InfoNCE, van den Oord et al. 2018, eq. 4).

The other pairs of the batch serve as the wrong answers (in-batch negatives, Henderson et al. 2017, §4).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import ConfigError, ShapeError

NONE = -1  # the number of a text that is not there


def contrastive_loss(
    queries: Float[Tensor, "q m"],
    candidates: Float[Tensor, "c m"],
    partners: Int[Tensor, " q"],
    *,
    temperature: float,
    ignored: Tensor | None = None,
) -> Float[Tensor, ""]:
    r"""Sum over the queries of $-\log \frac{e^{\cos(q, c_p) / \tau}}{\sum_j e^{\cos(q, c_j) / \tau}}$, p its partner.

    `partners` are the numbers of the right candidates, the others are wrong answers, unless they are `ignored` (q, c):
    texts that are no wrong answer, such as a second copy of the right one. The partner itself is never ignored. Of no
    queries the loss is 0. (van den Oord et al. 2018, eq. 4; with cosines and τ: Gao et al. 2021, eq. 1.)

    >>> texts = torch.eye(3)
    >>> loss = contrastive_loss(texts[:1], texts, torch.tensor([0]), temperature=0.5)
    >>> round(float(loss), 4)  # log(e² + 2) - 2
    0.2395
    """
    if not temperature > 0:
        raise ConfigError(
            f"temperature is {temperature}, but cosines are divided by it; give more than 0, such as 0.05"
        )
    if ignored is not None and ignored.shape != (len(queries), len(candidates)):
        raise ShapeError(
            f"ignored has shape {tuple(ignored.shape)} for {len(queries)} queries and {len(candidates)} candidates; "
            "give one truth for each two"
        )
    logits = F.normalize(queries, dim=-1) @ F.normalize(candidates, dim=-1).T / temperature  # q c
    if ignored is not None:
        right = F.one_hot(partners, len(candidates)).bool() if len(partners) else ignored
        logits = logits.masked_fill(ignored & ~right, -torch.inf)
    return F.cross_entropy(logits, partners, reduction="sum") if len(queries) else logits.sum()


def pair_loss(
    own: Float[Tensor, "b 3 m"],
    said: Int[Tensor, "b 3"],
    every: Float[Tensor, "n 3 m"],
    texts: Int[Tensor, "n 3"],
    *,
    start: int = 0,
    temperature: float,
) -> Float[Tensor, ""]:
    """Sum over pairs of the mean of two losses: a text looks for its other among all, and the other for its text.

    A row is the vectors of text, other and hard negative; `said` numbers them: the same number is the same text, NONE
    a negative that is not there. `own` are the rows from `start` on of `every`. A negative is a wrong answer for all.
    What is a text of the pair itself, or the partner of one in another pair, is no wrong answer.

    >>> vectors = torch.eye(6).view(2, 3, 6)
    >>> said = torch.tensor([[0, 1, 2], [3, 4, NONE]])
    >>> round(float(pair_loss(vectors, said, vectors, said, temperature=1.0)), 4)  # (2 log 3 + 2 log 2) / 2
    1.7918
    """
    partners = start + torch.arange(len(own), device=own.device)
    same = mark_same(said[:, :2], texts[:, :2])  # b n
    there = texts[:, 2] != NONE
    negatives, named = every[there, 2], texts[there, 2]  # c m, c
    candidates = torch.cat([every[:, 1], negatives])
    ignored = torch.cat([same, (named[None, :, None] == said[:, None, :2]).any(-1)], 1)
    found = contrastive_loss(own[:, 0], candidates, partners, temperature=temperature, ignored=ignored)
    back = contrastive_loss(own[:, 1], every[:, 0], partners, temperature=temperature, ignored=same)
    return (found + back) / 2


def mark_same(said: Int[Tensor, "b 2"], texts: Int[Tensor, "n 2"]) -> Bool[Tensor, "b n"]:
    """Which pairs have a text in common, so that none is a wrong answer to the other; texts are given as numbers.

    >>> said = torch.tensor([[1, 5], [2, 6], [3, 1]])
    >>> mark_same(said, said).int()
    tensor([[1, 0, 1],
            [0, 1, 0],
            [1, 0, 1]], dtype=torch.int32)
    """
    return (said[:, None, :, None] == texts[None, :, None, :]).flatten(2).any(-1)
