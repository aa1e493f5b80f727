"""To and from `nn.MultiheadAttention`."""

import math

import torch
from torch import Tensor, nn

from regard.attention.score import ScaledDot
from regard.layers.multihead import MultiHead


def from_torch(made: type[MultiHead], theirs: nn.MultiheadAttention) -> MultiHead:
    """A layer of ours with their weights."""
    for name, used in (("add_bias_kv", theirs.bias_k is not None), ("add_zero_attn", theirs.add_zero_attn)):
        if used:
            raise ValueError(
                f"the nn.MultiheadAttention was made with {name}=True, which MultiHead has no counterpart for; "
                f"make it without {name}"
            )
    ours = made(
        theirs.embed_dim,
        theirs.num_heads,
        key_width=theirs.kdim,
        value_width=theirs.vdim,
        bias=theirs.in_proj_bias is not None,
        dropout=theirs.dropout,
    )
    ours.to(theirs.out_proj.weight).train(theirs.training)
    for layer, (weight, bias) in zip((ours.to_q, ours.to_k, ours.to_v, ours.to_out), parts(theirs)):
        copy(weight, layer.weight)
        copy(bias, layer.bias)
    return ours


def to_torch(ours: MultiHead) -> nn.MultiheadAttention:
    """A layer of theirs with our weights."""
    d = ours.head_width
    scaled = ours.scale is None or (isinstance(ours.scale, float) and math.isclose(ours.scale, d**-0.5))
    for cannot, what in (
        (ours.kv_heads != ours.heads, f"{ours.kv_heads} key heads shared by {ours.heads} heads"),
        (ours.heads * d != ours.width, f"heads of width {d} that do not add up to width {ours.width}"),
        (ours.positions is not None, f"positions={type(ours.positions).__name__}"),
        (ours.q_norm is not None, "qk_norm=True"),
        ((ours.to_q.bias is None) != (ours.to_out.bias is None), f"out_bias={ours.to_out.bias is not None}"),
        (not (ours.score is None or isinstance(ours.score, ScaledDot)), f"score={type(ours.score).__name__}"),
        (not scaled, f"scale={ours.scale}"),
        (ours.softcap is not None, f"softcap={ours.softcap}"),
        (ours.sink_logits is not None, "sinks=True"),
        (ours.attention is not None, f"attention={type(ours.attention).__name__}"),
    ):
        if cannot:
            raise ValueError(f"nn.MultiheadAttention cannot express {what}; keep the MultiHead, or make one without it")
    weight = ours.to_out.weight
    theirs = nn.MultiheadAttention(
        ours.width,
        ours.heads,
        dropout=ours.dropout,
        bias=ours.to_q.bias is not None,
        kdim=ours.key_width,
        vdim=ours.value_width,
        batch_first=True,
        device=weight.device,
        dtype=weight.dtype,
    ).train(ours.training)
    for layer, (into, bias) in zip((ours.to_q, ours.to_k, ours.to_v, ours.to_out), parts(theirs)):
        copy(layer.weight, into)
        copy(layer.bias, bias)
    return theirs


def parts(theirs: nn.MultiheadAttention) -> list[tuple[Tensor, Tensor | None]]:
    """Their weights and biases as views, for q, k, v and out; one matrix holds the first three if all are square."""
    if theirs._qkv_same_embed_dim:
        weights = list(theirs.in_proj_weight.detach().chunk(3))
    else:
        weights = [theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight]
    biases = [None] * 3 if theirs.in_proj_bias is None else list(theirs.in_proj_bias.detach().chunk(3))
    return list(zip([*weights, theirs.out_proj.weight], [*biases, theirs.out_proj.bias]))


@torch.no_grad()
def copy(source: Tensor | None, into: Tensor | None) -> None:
    if source is not None and into is not None:
        into.copy_(source)
