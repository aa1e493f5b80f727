"""Logits → the likeliest tokens or classes, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.app.protocol.messages import ModelOutput, Probability

TOP = 10
Namer = Callable[[int], str]


@dataclass
class Prediction:
    """Logits over names: (n,) of what comes next, of a masked token or of classes, (t, n) of all positions."""

    logits: Tensor
    name: Namer
    of: Literal["next", "masked", "classes"] = "next"

    @property
    def is_single(self) -> bool:
        """Whether it is of one position, so that its strongest names can be listed."""
        return self.logits.ndim == 1


def describe_output(prediction: Prediction | None, text: str | None = None) -> ModelOutput:
    """What a model gave, for a page: the text, and the strongest of a prediction of one position."""
    strongest = None
    if prediction is not None and prediction.is_single:
        strongest = top(prediction.logits, prediction.name)
    output = ModelOutput(text=text, next=None, classes=None)
    if prediction is not None:
        setattr(output, prediction.of, strongest)
    return output


def top(logits: Tensor, name: Namer, count: int = TOP) -> list[Probability]:
    """The strongest of one row of logits, by probability.

    >>> top(torch.tensor([0.0, 2.0, 1.0]), "abc".__getitem__, 2)
    [Probability(name='b', share=0.665...), Probability(name='c', share=0.244...)]
    """
    shares = logits.detach().double().softmax(-1)
    return name_all(shares.topk(min(count, shares.shape[-1])).indices.tolist(), shares, name)


def top_of_both(
    before: Tensor, after: Tensor, name: Namer, count: int = TOP
) -> tuple[list[Probability], list[Probability]]:
    """The strongest before and after: each list names what is strong in either, so that none lacks its partner."""
    pair = [row.detach().double().softmax(-1) for row in (before, after)]
    most = min(count, pair[0].shape[-1])
    either = list(dict.fromkeys(i for shares in pair for i in shares.topk(most).indices.tolist()))
    ordered = [[either[i] for i in shares[either].argsort(descending=True).tolist()] for shares in pair]
    return name_all(ordered[0], pair[0], name), name_all(ordered[1], pair[1], name)


def name_all(numbers: Sequence[int], shares: Tensor, name: Namer) -> list[Probability]:
    return [Probability(name=name(i), share=float(shares[i])) for i in numbers]


def divergence(before: Tensor, after: Tensor) -> float:
    """The KL divergence of the second distribution from the first, in nats: Σ p log(p / p'), mean over the rows."""
    p, other = (x.detach().double().log_softmax(-1) for x in (before, after))
    rows = torch.where(p == -torch.inf, 0.0, p.exp() * (p - other)).sum(-1).clamp_min(0.0)
    return float(rows.mean())
