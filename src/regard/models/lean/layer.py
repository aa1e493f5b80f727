"""One block in as few calls of torch as there are: over joined weights, for one new token of each row or for many."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.feedforward import ACTIVATIONS
from regard.models.lean.cache import SlotCache
from regard.models.lean.joined import JoinedLayer, JoinedLinear, JoinedNorm


class Shape(NamedTuple):
    """Numbers that all blocks of a model share."""

    heads: int
    kv_heads: int
    head_width: int
    scale: float
    activation: str
    zero: Tensor  # what a product is added to where it is added to nothing


class Turn(NamedTuple):
    """Cosines and sines of the new tokens, (t, d) or (b, t, 1, d)."""

    cos: Tensor
    sin: Tensor


FEW, FEW_FOR_ONE_THREAD = 32, 8  # rows up to which a product is quicker with the weights on its left


def multiply(x: Tensor, linear: JoinedLinear) -> Tensor:
    """x (b, t, m) times the rows of a linear layer, (b, t, n).

    One token of a few rows is computed as (W xᵀ)ᵀ, which reads the weights with all threads; x Wᵀ of torch takes one
    thread for one row, so that a single row comes twice. Rows of x must lie in memory one after the other.
    """
    rows = x.shape[0]
    if x.shape[1] > 1 or rows > (FEW if torch.get_num_threads() > 1 else FEW_FOR_ONE_THREAD):
        return F.linear(x, linear.weight, linear.bias)
    turned = (x[:, 0].contiguous() if rows > 1 else x[0].expand(2, -1).contiguous()).t()  # m b
    if linear.bias is None:
        product = torch.mm(linear.weight, turned)
    else:
        product = torch.addmm(linear.bias[:, None], linear.weight, turned)
    return product[:, :rows].t()[:, None]


def apply_norm(x: Tensor, norm: JoinedNorm) -> Tensor:
    """x, normed over its last axis."""
    if norm.is_rms:
        return F.rms_norm(x, norm.weight.shape, norm.weight, norm.eps)
    return F.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.eps)


def project_heads(x: Tensor, layer: JoinedLayer, shape: Shape, turn: Turn | None) -> tuple[Tensor, Tensor, Tensor]:
    """q (b, t, h, d), k and v (b, t, g, d) of what the norm before attention gave, (b, t, m)."""
    h, g, d = shape.heads, shape.kv_heads, shape.head_width
    heads = multiply(x, layer.qkv).unflatten(-1, (h + 2 * g, d))
    asked = heads[:, :, : h + g]
    if layer.q_norm is not None and layer.k_norm is not None:
        asked = torch.cat((apply_norm(asked[:, :, :h], layer.q_norm), apply_norm(asked[:, :, h:], layer.k_norm)), 2)
    if turn is not None:
        asked = torch.addcmul(asked * turn.cos, asked.roll(d // 2, -1), turn.sin)
    return asked[:, :, :h], asked[:, :, h:], heads[:, :, h + g :]


def add_network(x: Tensor, layer: JoinedLayer, shape: Shape) -> Tensor:
    """x, and what the feed-forward network adds to it, where there is one."""
    if layer.gate_up is None or layer.down is None or layer.network_norm is None:
        return x
    hidden = multiply(apply_norm(x, layer.network_norm), layer.gate_up)
    if shape.activation == "swiglu":
        gate, up = hidden.chunk(2, -1)
        hidden = F.silu(gate).mul_(up)
    else:
        hidden = ACTIVATIONS[shape.activation](hidden)
    return add_linear(x, hidden, layer.down)


def add_linear(x: Tensor, y: Tensor, linear: JoinedLinear) -> Tensor:
    """x plus a projection of y."""
    return x + multiply(y, linear)


def attend_one(q: Tensor, cache: SlotCache, count: int, shape: Shape, hidden: Tensor | None) -> Tensor:
    """What one token of each row gathers from the first `count` slots, (b, 1, h · d); `hidden` is −∞ at padding."""
    assert cache.keys is not None
    assert cache.values is not None
    rows = q.shape[0]
    asked = q.reshape(rows * shape.kv_heads, -1, shape.head_width)  # b·g h/g d: heads of one key head ask as one
    keys, values = cache.keys[:, :count], cache.values[:, :count]
    if hidden is None:
        scores = torch.baddbmm(shape.zero, asked, keys.mT, beta=0, alpha=shape.scale)  # b·g h/g k
    else:
        scores = torch.baddbmm(hidden, asked, keys.mT, alpha=shape.scale)
    return torch.bmm(scores.softmax(-1), values).view(rows, 1, -1)


def attend_many(q: Tensor, k: Tensor, v: Tensor, shape: Shape, mask: Tensor | None) -> Tensor:
    """What many tokens gather, (b, t, h · d), from keys and values (b, g, k, d); without a mask each looks back."""
    looks_back = mask is None and q.shape[1] == k.shape[2] and q.shape[1] > 1
    mix = F.scaled_dot_product_attention(
        q.transpose(1, 2), k, v, mask, is_causal=looks_back, scale=shape.scale, enable_gqa=shape.heads != shape.kv_heads
    )
    return mix.transpose(1, 2).flatten(2)
