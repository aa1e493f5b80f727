"""Logits → what a model finds likely, with names."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.app.runners.runner import Chances

TOP = 10
Name = Callable[[int], str]


def likely(logits: Tensor, name: Name, count: int = TOP) -> Chances:
    """The strongest of one row of logits, by probability.

    >>> likely(torch.tensor([0.0, 2.0, 1.0]), "abc".__getitem__, 2)
    [{'name': 'b', 'share': 0.665...}, {'name': 'c', 'share': 0.244...}]
    """
    shares = logits.detach().double().softmax(-1)
    found = shares.topk(min(count, shares.shape[-1]))
    return listed(found.indices.tolist(), shares, name)


def both(before: Tensor, after: Tensor, name: Name, count: int = TOP) -> tuple[Chances, Chances]:
    """The strongest before and after: each list names what is strong in either, so that none lacks its partner."""
    pair = [row.detach().double().softmax(-1) for row in (before, after)]
    most = min(count, pair[0].shape[-1])
    chosen = list(dict.fromkeys(i for shares in pair for i in shares.topk(most).indices.tolist()))
    ordered = [[chosen[i] for i in shares[chosen].argsort(descending=True).tolist()] for shares in pair]
    return listed(ordered[0], pair[0], name), listed(ordered[1], pair[1], name)


def listed(numbers: Sequence[int], shares: Tensor, name: Name) -> Chances:
    return [{"name": name(i), "share": float(shares[i])} for i in numbers]


def divergence(before: Tensor, after: Tensor) -> float:
    """How far distributions moved, in nats: Σ p log(p / p'), mean over the rows."""
    p, other = (x.detach().double().log_softmax(-1) for x in (before, after))
    rows = torch.where(p == -torch.inf, 0.0, p.exp() * (p - other)).sum(-1).clamp_min(0.0)
    return float(rows.mean())
