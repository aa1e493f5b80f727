"""Where a model looks from each token: back, at itself, ahead; and where it may look at all."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import TraceError
from regard.trace.measure.tally import looks_back, maskless
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace


class Directions(NamedTuple):
    """Means over all rows of all heads of self-attention; `looks_ahead` is whether any may look at a later token."""

    may_look: float  # share of the map
    back: float  # share of the weight
    itself: float
    ahead: float
    distance: float  # |query − key|, in tokens
    entropy: float  # bits
    looks_ahead: bool


@torch.no_grad()
def measure_directions(trace: Trace) -> Directions:
    """What the self-attention of the last run did, with the first text of its batch.

    >>> import regard, torch
    >>> from regard.trace.record.layer import Layer
    >>> from regard.trace.record.trace import Run, Trace
    >>> x = torch.zeros(1, 1, 3, 2)  # all keys fit alike
    >>> layer = Layer("attention", "self", regard.attend(x, x, x, mask=regard.causal()).weights)
    >>> measure_directions(Trace([Run([layer])]))
    Directions(may_look=0.66..., back=0.38..., itself=0.61..., ahead=0.0, distance=0.50..., entropy=0.86..., ...)
    """
    layers = [layer for layer in trace.layers if layer.kind == "self"]
    if not layers:
        raise TraceError("no self-attention was seen, so there is nothing to compare; give a model that has some")
    parts = [measure_layer(layer) for layer in layers]
    rows = torch.tensor([float(layer.heads) for layer in layers], dtype=torch.float64)
    means = (torch.stack([numbers for numbers, _ in parts]) * rows[:, None]).sum(0) / rows.sum()
    may_look, back, itself, ahead, distance, entropy = means.tolist()
    return Directions(may_look, back, itself, ahead, distance, entropy, any(sees for _, sees in parts))


def measure_layer(layer: Layer) -> tuple[Float[Tensor, " six"], bool]:
    """The six means of one layer, and whether any of its queries may look at a later key."""
    weights = layer.weights[0].dense().double()  # h q k
    heads, queries, keys = weights.shape
    visible = visible_cells(layer).expand(heads, queries, keys)
    offset = torch.arange(keys)[None] - (torch.arange(queries)[:, None] + keys - queries)  # q k: key − query
    total = weights.sum()
    means = [
        visible.double().mean(),
        weights[:, offset < 0].sum() / total,
        weights[:, offset == 0].sum() / total,
        weights[:, offset > 0].sum() / total,
        (weights * offset.abs()).sum(-1).mean(),
        torch.special.entr(weights).sum(-1).mean() / torch.log(torch.tensor(2.0, dtype=torch.float64)),
    ]
    return torch.stack(means), bool(visible[:, offset > 0].any())


def ahead_shares(layer: Layer) -> list[float] | None:
    """The share of the weight that each head gives to later tokens; None where none may look at them."""
    weights = layer.weights[0].dense().double()  # h q k
    first = weights.shape[-1] - weights.shape[-2] + 1
    if not bool(visible_cells(layer).expand(weights.shape).triu(first).any()):
        return None
    shares: list[float] = (weights.triu(first).sum((-2, -1)) / weights.sum((-2, -1))).tolist()
    return shares


def visible_cells(layer: Layer) -> Bool[Tensor, "..."]:
    """Where queries may look; of weights without a mask that never go ahead, what lies ahead counts as hidden."""
    source = layer.weights.source.pick((0,))
    allowed: Tensor | None = source.allowed()
    queries, keys = source.shape[-2:]
    if allowed is None:
        allowed = torch.ones(queries, keys, dtype=torch.bool)
        if maskless(source) and looks_back(source):
            allowed = allowed.tril(keys - queries)
    return allowed.cpu()
