"""The weights of a decoder that looks at a source, joined as those of decoder-only models are."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.lean.joined import (
    JoinedLayer,
    JoinedLinear,
    JoinedNorm,
    find_norm,
    find_parameter,
    join_linears,
    join_parameters,
    join_self_attention,
)


class JoinedCross(NamedTuple):
    """The weights of attention to a source, whose keys and values are projected once and for all."""

    norm: JoinedNorm
    q: JoinedLinear
    q_norm: JoinedNorm | None
    out: JoinedLinear


class JoinedDecoderLayer(NamedTuple):
    """The weights of one block: self-attention and network, and what stands between them."""

    own: JoinedLayer
    cross: JoinedCross


class JoinedDecoder(NamedTuple):
    """All weights of a decoder: tables and head, and one `JoinedDecoderLayer` per block."""

    embed: Tensor  # n m
    added: Tensor | None  # learned positions, t m
    layers: tuple[JoinedDecoderLayer, ...]
    norm: JoinedNorm | None  # behind the last block, where norms stand before the sublayers
    head: JoinedLinear


@torch.no_grad()
def join_decoder(model: EncoderDecoder) -> JoinedDecoder:
    """The weights of the decoder of a model, joined now where they are not yet.

    >>> from regard.models import TranslatorConfig
    >>> model = TranslatorConfig(11, 13, width=8, heads=2, layers=1).build()
    >>> joined = join_decoder(model)
    >>> joined.layers[0].own.qkv.weight.shape, joined.layers[0].cross.q.weight.shape
    (torch.Size([24, 8]), torch.Size([8, 8]))
    """
    decoder: Any = model.decoder
    with torch.inference_mode(False):
        return JoinedDecoder(
            join_parameters([model.target_table]),
            None if getattr(decoder.added, "weight", None) is None else find_parameter(decoder.added, "weight"),
            tuple(join_decoder_layer(block) for block in decoder.blocks),
            None if getattr(decoder.norm, "weight", None) is None else find_norm(decoder.norm),
            JoinedLinear(join_parameters([model.head_weight]), None),
        )


def join_decoder_layer(block: Any) -> JoinedDecoderLayer:
    """The weights of one block."""
    cross = block.cross_attention
    return JoinedDecoderLayer(
        join_self_attention(block, block.self_attention, block.around_self_attention),
        JoinedCross(
            find_norm(block.around_cross_attention.norm),
            join_linears((cross.to_q,)),
            None if cross.q_norm is None else find_norm(cross.q_norm),
            join_linears((cross.to_out,)),
        ),
    )
