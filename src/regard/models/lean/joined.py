"""The weights of a model as few large tensors, of which the parameters of its modules are views.

Projections that read the same activations are one matrix: q, k and v, and the gate and the hidden layer of a network.
Nothing is copied twice: a parameter keeps its identity, its shape and its numbers, and what is written into it later,
by an optimizer or `load_state_dict`, stands in the joined matrix too.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.models.causal import CausalModel


class JoinedLinear(NamedTuple):
    """One or several linear layers with the same input: rows of weight (n, m) and bias (n,) one after the other."""

    weight: Tensor
    bias: Tensor | None


class JoinedNorm(NamedTuple):
    """A layer norm, or an RMS norm: `is_rms`, without a bias."""

    weight: Tensor
    bias: Tensor | None
    eps: float
    is_rms: bool


class JoinedLayer(NamedTuple):
    """The weights of one block, each contiguous; None where the block has none."""

    attention_norm: JoinedNorm
    qkv: JoinedLinear  # rows of q, then of k, then of v; within each head by head
    q_norm: JoinedNorm | None
    k_norm: JoinedNorm | None
    out: JoinedLinear
    network_norm: JoinedNorm | None
    gate_up: JoinedLinear | None  # rows of the gate, where there is one, then of the hidden layer
    down: JoinedLinear | None


class JoinedWeights(NamedTuple):
    """All weights of a model: tables and head, and one `JoinedLayer` per block."""

    embed: Tensor  # n m
    added: Tensor | None  # learned positions, t m
    layers: tuple[JoinedLayer, ...]
    norm: JoinedNorm
    head: Tensor  # n m; the embeddings themselves where both are tied


@torch.no_grad()
def join_weights(model: CausalModel) -> JoinedWeights:
    """The weights of a model, joined now where they are not yet.

    >>> from regard.models import Llama, LlamaConfig
    >>> model = Llama(LlamaConfig(vocab_size=10, width=8, heads=4, layers=2, context=16, hidden=20, kv_heads=2))
    >>> joined = join_weights(model)
    >>> joined.layers[0].qkv.weight.shape
    torch.Size([16, 8])
    >>> model.blocks[0].attention.to_k.weight.data.zero_().any()
    tensor(False)
    >>> joined.layers[0].qkv.weight[8:12].any()
    tensor(False)
    """
    with torch.inference_mode(False):
        return JoinedWeights(
            find_parameter(model.embed, "weight"),
            None if getattr(model.added, "weight", None) is None else find_parameter(model.added, "weight"),
            tuple(join_layer(block) for block in model.blocks),
            find_norm(model.norm),
            find_parameter(model.embed if model.head is None else model.head, "weight"),
        )


def join_layer(block: Any) -> JoinedLayer:
    """The weights of one block of a decoder-only model."""
    return join_self_attention(block, block.attention, block.around_attention)


def join_self_attention(block: Any, attention: Any, around: Any) -> JoinedLayer:
    """The weights of a block's self-attention, of the norm around it, and of its network."""
    network = getattr(block, "feed_forward", None)
    ways = () if network is None else tuple(part for part in (network.to_gate, network.to_hidden) if part is not None)
    return JoinedLayer(
        find_norm(around.norm),
        join_linears((attention.to_q, attention.to_k, attention.to_v)),
        None if attention.q_norm is None else find_norm(attention.q_norm),
        None if attention.k_norm is None else find_norm(attention.k_norm),
        join_linears((attention.to_out,)),
        None if network is None else find_norm(block.around_feed_forward.norm),
        join_linears(ways) if ways else None,
        None if network is None else join_linears((network.to_out,)),
    )


def join_linears(layers: Sequence[nn.Linear]) -> JoinedLinear:
    """Linear layers with the same input as one."""
    weight = join_parameters([layer.weight for layer in layers])
    biases = [layer.bias for layer in layers if layer.bias is not None]
    return JoinedLinear(weight, join_parameters(biases) if biases else None)


def join_parameters(parts: Sequence[Tensor]) -> Tensor:
    """One tensor with the rows of all; each part becomes a view of its rows where it is none yet."""
    if not are_joined(parts):
        whole = torch.cat([part.detach() for part in parts])
        for part, rows in zip(parts, whole.split([len(part) for part in parts])):
            part.data = rows
    first = parts[0].detach()
    return first.as_strided((sum(len(part) for part in parts), *first.shape[1:]), first.stride())


def are_joined(parts: Sequence[Tensor]) -> bool:
    """Whether each part is contiguous and begins in memory where the one before it ends."""
    if not all(part.is_contiguous() for part in parts):
        return False
    whole = parts[0].untyped_storage().data_ptr()
    places = [(part.untyped_storage().data_ptr(), part.storage_offset()) for part in parts]
    ends = [part.storage_offset() + part.numel() for part in parts]
    return all(place == (whole, end) for place, end in zip(places[1:], ends))


def find_norm(norm: Any) -> JoinedNorm:
    """The weights of a layer norm or an RMS norm."""
    weight, is_rms = norm.weight.detach(), isinstance(norm, nn.RMSNorm)
    bias = None if is_rms or norm.bias is None else norm.bias.detach()
    return JoinedNorm(weight, bias, torch.finfo(weight.dtype).eps if norm.eps is None else norm.eps, is_rms)


def find_parameter(module: nn.Module | None, name: str) -> Tensor:
    """A parameter without its graph; one that is not contiguous is laid out anew."""
    parameter: nn.Parameter = getattr(module, name)
    return join_parameters([parameter])


def find_pointers(model: nn.Module) -> Iterator[int]:
    """Where each parameter lies: another list means that parameters were moved or replaced."""
    return (parameter.data_ptr() for parameter in model.parameters())
