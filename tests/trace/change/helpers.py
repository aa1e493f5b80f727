"""A small attention layer, and the same written out with something done to its weights or to its mix."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.trace.change.edit import Editor, edit
from tests.trace.models import Attention, expected, seeded

WAYS = ["sdpa", "by_hand", "by_bmm", "by_einsum"]
HEADS, WIDTH, LENGTH = 3, 24, 5


def layer_of(way: str = "sdpa", **how) -> Attention:
    return seeded(Attention(WIDTH, HEADS, way, **how)).double()


def inputs(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randn(batch, length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_formula(
    layer: Attention,
    x: Tensor,
    mask: Tensor | None = None,
    *,
    weights: Callable[[Tensor], Tensor] = lambda w: w,
    mix: Callable[[Tensor], Tensor] = lambda m: m,
) -> Tensor:
    """The layer written out, with something done to its weights and to its mix."""
    _, v = layer.kv(x).unflatten(-1, (2, layer.kv_heads, -1)).permute(2, 0, 3, 1, 4)
    v = v.repeat_interleave(layer.num_heads // layer.kv_heads, 1)
    mixed = mix(weights(expected(layer, x, mask)) @ v)
    return layer.out(mixed.transpose(1, 2).flatten(2))


def hidden(*cells: tuple[int, int], heads: slice = slice(None), length: int = LENGTH) -> Tensor:
    """A mask that hides these (query, key) cells of some heads."""
    mask = torch.ones(1, HEADS, length, length, dtype=torch.bool)
    for query, key in cells:
        mask[:, heads, query, key] = False
    return mask


def causal(length: int = LENGTH) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def put(where: tuple, value: Tensor | float) -> Callable[[Tensor], Tensor]:
    """What sets some cells to something."""

    def change(given: Tensor) -> Tensor:
        given = given.clone()
        given[where] = value
        return given

    return change


def under(model: Any, ask: Callable[[Editor], Any], *args: Any, **named: Any) -> Any:
    """What a model gives under edits, without gradients."""
    with torch.no_grad(), edit(model) as e:
        ask(e)
        return model(*args, **named)
