"""One block in as few calls of torch as there are: over joined weights, for one new token of each row or for many."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.feedforward import ACTIVATIONS, GATED
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
    is_post: bool = False  # whether norms stand after the sublayers and what is added back


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
        return torch.rms_norm(x, norm.weight.shape, norm.weight, norm.eps)
    return torch.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.eps)


def norm_before(x: Tensor, norm: JoinedNorm, shape: Shape) -> Tensor:
    """What a sublayer reads."""
    return x if shape.is_post else apply_norm(x, norm)


def norm_after(x: Tensor, norm: JoinedNorm, shape: Shape) -> Tensor:
    """What comes of the input of a sublayer plus its output."""
    return apply_norm(x, norm) if shape.is_post else x


def project_heads(x: Tensor, layer: JoinedLayer, shape: Shape, turn: Turn | None) -> tuple[Tensor, Tensor, Tensor]:
    """q (b, t, h, d), k and v (b, t, g, d) of what the norm before attention gave, (b, t, m)."""
    h, g, d = shape.heads, shape.kv_heads, shape.head_width
    heads = multiply(x, layer.qkv).view(*x.shape[:2], h + 2 * g, d)
    q, k, v = heads.split((h, g, g), 2)
    if layer.q_norm is not None and layer.k_norm is not None:
        q, k = apply_norm(q, layer.q_norm), apply_norm(k, layer.k_norm)
    if turn is not None:
        asked = heads[:, :, : h + g] if layer.q_norm is None else torch.cat((q, k), 2)
        q, k = torch.addcmul(asked * turn.cos, asked.roll(d // 2, -1), turn.sin).split((h, g), 2)
    return q, k, v


def add_network(x: Tensor, layer: JoinedLayer, shape: Shape) -> Tensor:
    """x, and what the feed-forward network adds to it, where there is one."""
    if layer.gate_up is None or layer.down is None or layer.network_norm is None:
        return x
    hidden, bend = multiply(norm_before(x, layer.network_norm, shape), layer.gate_up), ACTIVATIONS[shape.activation]
    if shape.activation in GATED:
        gate, up = hidden.chunk(2, -1)
        hidden = bend(gate).mul_(up)
    else:
        hidden = bend(hidden)
    return norm_after(add_linear(x, hidden, layer.down), layer.network_norm, shape)


def add_linear(x: Tensor, y: Tensor, linear: JoinedLinear) -> Tensor:
    """x plus a projection of y."""
    return x + multiply(y, linear)


def attend_one(q: Tensor, cache: SlotCache, count: int, shape: Shape, hidden: Tensor | None) -> Tensor:
    """What one token of each row gathers from the first `count` slots, (b, 1, h · d); `hidden` is −∞ at padding."""
    assert cache.keys is not None
    assert cache.values is not None
    rows = q.shape[0]
    asked = q.reshape(rows * shape.kv_heads, -1, shape.head_width)  # b·g h/g d: heads of one key head ask as one
    weights = weigh(asked, cache.keys[:, :count].mT, shape, hidden)  # b·g h/g k
    return torch.bmm(weights, cache.values[:, :count]).view(rows, 1, -1)


def attend_beams(q: Tensor, keys: Tensor, values: Tensor, shape: Shape, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
    """What one token of each row gathers, (b, 1, h · d), and the weights (e · h, w, k).

    The w rows of each of e entries stand side by side and ask as one for its keys, (e · h, d, k), and values,
    (e · h, k, d). `hidden` (e · h, w or 1, k) is −∞ where a row may not look.
    """
    (rows, _, h, d), flat = q.shape, keys.shape[0]
    width = rows * h // flat
    asked = q.view(-1, width, h, d).transpose(1, 2).reshape(flat, width, d)
    weights = weigh(asked, keys, shape, hidden)
    mix = torch.bmm(weights, values).view(-1, h, width, d)
    return mix.transpose(1, 2).reshape(rows, 1, h * d), weights


def weigh(asked: Tensor, keys: Tensor, shape: Shape, hidden: Tensor | None) -> Tensor:
    """The weights of queries (n, q, d) and keys (n, d, k); `hidden` is −∞ where a query may not look."""
    if hidden is None:
        return torch.baddbmm(shape.zero, asked, keys, beta=0, alpha=shape.scale).softmax(-1)
    return torch.baddbmm(hidden, asked, keys, alpha=shape.scale).softmax(-1)


def attend_many(q: Tensor, k: Tensor, v: Tensor, shape: Shape, mask: Tensor | None) -> Tensor:
    """What many tokens gather, (b, t, h · d), from keys and values (b, g, k, d); without a mask each looks back."""
    looks_back = mask is None and q.shape[1] == k.shape[2] and q.shape[1] > 1
    mix = F.scaled_dot_product_attention(
        q.transpose(1, 2), k, v, mask, is_causal=looks_back, scale=shape.scale, enable_gqa=shape.heads != shape.kv_heads
    )
    return mix.transpose(1, 2).flatten(2)
