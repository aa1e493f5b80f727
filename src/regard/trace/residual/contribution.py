"""What the heads of a layer add to the residual stream: weights · v · W_O, by the steps that the model itself took."""

from typing import Any

import torch
from torch import Tensor

from regard.attention.axes.heads import multiply_grouped
from regard.errors import TraceError
from regard.trace.record.layer import Layer
from regard.trace.residual.stream import NOT_KEPT


@torch.no_grad()
def contribution(layer: Layer, head: int | None = None, queries: Any = None, *, batch: int = 0) -> Tensor:
    """(q, m) of one head, (h, q, m) of all: what they add to the residual stream, biases left out.

    The weights are computed from q and k, times v, and go through the projections and norms that stood between the
    heads and the stream, with each norm's scale as it was. All heads and the biases add up to what the layer gave.

    >>> import regard
    >>> model = regard.models.GPTConfig(vocab_size=11, width=8, heads=2, layers=1, context=16).build()
    >>> with torch.no_grad(), regard.watch(model, residual=True) as trace:
    ...     _ = model(torch.tensor([[1, 2, 3]]))
    >>> contribution(trace[0], head=1).shape, contribution(trace[0], queries=-1).shape
    (torch.Size([3, 8]), torch.Size([2, 8]))
    """
    term = layer.mix_term
    if term is None:
        raise TraceError(f"how the heads of {layer.name} reach the residual stream is not known; {NOT_KEPT}")
    if not term.steps:
        raise TraceError(
            f"what the heads of {layer.name} gave was not added to a residual stream by linear steps and norms alone"
        )
    if layer.v is None:
        raise TraceError(f"{layer.name} kept no values; watch it with values=True")
    if head is not None:
        layer.head(head, batch=batch)  # says so where there is no such head, or no such entry
    weights = layer.weights[batch]
    v = layer.v[batch if layer.v.shape[0] > 1 else 0]  # g k e
    q, k = weights.shape[-2:]
    rows = torch.arange(q, device=v.device) if queries is None else torch.arange(q, device=v.device)[queries]
    wanted = rows.reshape(-1)
    mix = multiply_grouped(weights[..., wanted, :], v[:, :k].to(weights.dtype))  # h r e
    numbers = term.to_bhqe(torch.arange(torch.Size(term.shape).numel(), device=v.device).reshape(term.shape))
    places = numbers[batch][:, wanted]  # h r e: where each number of these heads stands in the model's own tensor
    found = []
    for one in range(layer.heads) if head is None else [head % layer.heads]:
        alone = mix.new_zeros(torch.Size(term.shape).numel())
        alone[places[one].reshape(-1)] = mix[one].reshape(-1)
        x = alone.reshape(term.shape)
        for step in term.steps:
            x = step.forward(x)
        found.append(rows_of(x, batch, q)[rows])
    return torch.stack(found) if head is None else found[0]


def rows_of(x: Tensor, batch: int, q: int) -> Tensor:
    """(q, m) of one entry, from what was added to the stream: (b, q, m), (q, b, m) or (q, m)."""
    if x.ndim == 2:
        return x
    if x.shape[-2] == q:
        return x[batch]
    return x[:, batch]
