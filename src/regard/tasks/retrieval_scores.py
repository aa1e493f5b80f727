"""How good vectors of texts are: whether a text finds its partner among many, and whether near means near."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

QUERIES = 256  # ranked at a time
CUT = 10  # a partner behind this place counts nothing in MRR@10


class RetrievalScores(NamedTuple):
    """The share of queries whose partner comes first, and the mean of 1 / its place (0 beyond the tenth)."""

    accuracy: float
    mrr: float


def score_retrieval(pairs: Float[Tensor, "p 2 m"], said: Int[Tensor, "p 2"]) -> RetrievalScores:
    r"""Accuracy@1 and $\mathrm{MRR@10} = \frac1q \sum_i [r_i \le 10] / r_i$, r the partner's place (Voorhees 1999).

    `pairs` are vectors of length 1: text, other. `said` numbers what they say: the same number is the same text, and a
    text with itself is no pair. Each text is a query once, and searches among all others but itself. Its partners are
    right, the nearest of them counts; among equal cosines a partner has the last place, so that nothing is won by
    vectors that are all alike. Of no pairs both are 0.

    >>> a, b, c, d = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]])
    >>> pairs = torch.stack([torch.stack([a, b]), torch.stack([c, b]), torch.stack([b, d])])
    >>> score_retrieval(pairs, torch.tensor([[0, 1], [2, 1], [1, 3]]))
    RetrievalScores(accuracy=0.6666666666666666, mrr=0.8333333333333334)
    """
    true = said[:, 0] != said[:, 1]
    pairs, said = pairs[true], said[true]
    if not len(pairs):
        return RetrievalScores(0.0, 0.0)
    asked, offered = first_of_each(said[:, 0]), first_of_each(said[:, 1])
    candidates, names = pairs[offered, 1], said[offered, 1]  # c m, c
    ranks = []
    for some in asked.split(QUERIES):
        queries, own = pairs[some, 0], said[some, 0]  # q m, q
        cosines = (queries @ candidates.T).masked_fill(names == own[:, None], -torch.inf)  # q c
        right = mark_partners(own, names, said)
        best = cosines.masked_fill(~right, -torch.inf).amax(1, keepdim=True)
        ranks.append(1 + (~(cosines < best) & ~right).sum(1))
    places = torch.cat(ranks)
    mrr = torch.where(places <= CUT, 1 / places.double(), 0.0).mean()
    return RetrievalScores(float((places == 1).double().mean()), float(mrr))


def mark_partners(own: Int[Tensor, " q"], names: Int[Tensor, " c"], said: Int[Tensor, "p 2"]) -> Bool[Tensor, "q c"]:
    """Which candidates are partners of which queries, all given by what they say.

    >>> mark_partners(torch.tensor([4, 9]), torch.tensor([5, 6]), torch.tensor([[9, 6], [4, 5], [9, 5]])).int()
    tensor([[1, 0],
            [1, 1]], dtype=torch.int32)
    """
    row, column = ({int(one): at for at, one in enumerate(each.tolist())} for each in (own, names))
    right = torch.zeros(len(own), len(names), dtype=torch.bool)
    for one, two in said.tolist():
        if one in row:
            right[row[one], column[two]] = True
    return right


def first_of_each(numbers: Int[Tensor, " n"]) -> Int[Tensor, " d"]:
    """Where each number stands first, in their order.

    >>> first_of_each(torch.tensor([7, 3, 7, 5]))
    tensor([0, 1, 3])
    """
    return torch.from_numpy(np.sort(np.unique(numbers.numpy(), return_index=True)[1]))


def correlate_ranks(one: Float[np.ndarray, " n"], two: Float[np.ndarray, " n"]) -> float:
    """Spearman's correlation: that of Pearson between ranks, equal values having the mean of theirs; 0 of a constant.

    >>> round(correlate_ranks(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.3, 0.2, 0.9])), 3)
    0.8
    """
    ranks = [rank_values(values) for values in (one, two)]
    centred = [each - each.mean() for each in ranks]
    size = np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    return float((centred[0] * centred[1]).sum() / size) if size else 0.0


def rank_values(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The rank of each value from 1 on; equal ones share the mean of their ranks.

    >>> rank_values(np.array([5.0, 2.0, 5.0, 9.0]))
    array([2.5, 1. , 2.5, 4. ])
    """
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[where]
