"""How far a mix and its map are from exact attention on the same tensors, measured without the matrix."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.as_4d import add_leading_axes
from regard.attention.axes.heads import choose_key_heads
from regard.attention.axes.select import pick
from regard.attention.kernels.explicit import mix_values
from regard.attention.map import AttentionMap, Computed
from regard.attention.map.blocks import walk_blocks
from regard.attention.map.statistics import Place
from regard.errors import MapError


class Variation(NamedTuple):
    """Total variation ½ Σ |w − exact w| over the rows of a map: its mean, and that of the worst row."""

    mean: float
    largest: float


class Error(NamedTuple):
    """`mix` is ‖mix − exact mix‖ / ‖exact mix‖; `weights` is how much weight stands at other keys than it should.

    >>> import regard, torch
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> regard.attend(x, x, x).error().mix < 1e-12
    True
    """

    mix: float
    weights: Variation


@torch.no_grad()
def error(weights: AttentionMap, mix: Float[Tensor, "..."], v: Float[Tensor, "*_b k e"] | None) -> Error:
    """The error of a mix and its map, block by block of rows, against the same request computed in float64."""
    if v is None:
        raise MapError("the error of a mix needs the values that it was made of; ask what attend(…) gave back")
    exact, source = double(weights.exact.source.exact), weights.source
    lead = exact.shape[:-2]
    v = add_leading_axes(v, len(lead)).to(exact.dtype)
    mix = mix.reshape(*lead, exact.shape[-2], v.shape[-1])
    wrong = size = away = largest = 0.0
    for block in walk_blocks(exact):
        part = source.pick(block.lead) if block.lead else source
        right = block.part.weights(block.rows, block.columns)
        right = right.expand(*block.shape[:-2], *right.shape[-2:])
        far = (part.weights(block.rows, block.columns) - right).abs().sum(-1) / 2
        away, largest = away + far.sum().item(), max(largest, far.max().item())
        seen = block.part.allowed(block.rows, block.columns)
        values = pick_values(v, block.lead, lead)[..., block.columns, :]
        best = mix_values(right, values, seen)
        here: Place = (*block.lead, ..., block.rows, slice(None))
        wrong += (mix[here] - best).square().sum().item()
        size += best.square().sum().item()
    rows = max(1, torch.Size(exact.shape[:-1]).numel())
    relative = (wrong / size) ** 0.5 if size else float("inf") if wrong else 0.0
    return Error(relative, Variation(away / rows, largest))


def double(source: Computed | None) -> Computed:
    """The request in float64, where its scores are a plain product; other score functions own float32 weights."""
    assert source is not None
    return source.with_qk(source.q.double(), source.k.double()) if source.is_dot else source


def pick_values(v: Tensor, index: tuple[int, ...], lead: tuple[int, ...]) -> Tensor:
    """The values of some batch entries and heads; a head of them may stand for several queries' heads."""
    return pick(v, choose_key_heads(index, lead, v.shape[-3])) if index else v
