"""`nn.Transformer`, with the embeddings that stand around it, as our `Translator`."""

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import nn

from regard.errors import ModelError
from regard.models.convert.operations import split
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename
from regard.models.translator import TranslatorConfig

ACTIVATIONS = {F.relu: "relu", F.gelu: "gelu"}


def rename_attention(ours: str, theirs: str) -> Iterator[TensorRule]:
    """Rules for a `MultiHead` from an `nn.MultiheadAttention` with packed projections."""
    for end in ("weight", "bias"):
        packed = tuple(f"{ours}.to_{letter}.{end}" for letter in "qkv")
        yield TensorRule(packed, (f"{theirs}.in_proj_{end}",), (split(3),))
    yield from rename(f"{ours}.to_out", f"{theirs}.out_proj")


def rename_stack(side: str, attentions: dict[str, str]) -> Iterator[TensorRule]:
    """Rules for one stack; `attentions` are the names of ours and theirs, in their order."""
    ours, theirs = f"{side}.blocks.{{layer}}", f"{side}.layers.{{layer}}"
    for mine, other in attentions.items():
        yield from rename_attention(f"{ours}.{mine}", f"{theirs}.{other}")
    yield from rename(f"{ours}.feed_forward.to_hidden", f"{theirs}.linear1")
    yield from rename(f"{ours}.feed_forward.to_out", f"{theirs}.linear2")
    for number, name in enumerate([*attentions, "feed_forward"], start=1):
        yield from rename(f"{ours}.around_{name}.norm", f"{theirs}.norm{number}")
    yield from rename(f"{side}.norm", f"{side}.norm")


TORCH_TRANSFORMER = ConversionTable(
    family="torch_transformer",
    config=TranslatorConfig,
    keys=(
        ConfigKey("d_model", "width", default=512),
        ConfigKey("nhead", "heads", default=8),
        ConfigKey("num_encoder_layers", "layers", default=6),
        ConfigKey("num_decoder_layers", "decoder_layers", default=6),
        ConfigKey("dim_feedforward", "hidden", default=2048),
        ConfigKey("dropout", "dropout", default=0.1),
        ConfigKey("activation", "activation", "relu", {"relu": "relu", "gelu": "gelu"}),
        ConfigKey("norm_first", "order", False, {True: "pre", False: "post"}),
        ConfigKey("bias", "bias", default=True),
        *(ConfigKey(name, name) for name in ("source_vocab_size", "target_vocab_size")),
        ConfigKey("positions", "positions"),
        ConfigKey("context", "context", default=512),
        ConfigKey("shared", "shared", default=False),
        ConfigKey("tied", "tied", default=True),
        ConfigKey("pad", "pad", default=0),
    ),
    always={"norm": "layer", "attention": "scaled dot"},
    fixed={"layer_norm_eps": 1e-5},
    ignored=frozenset({"batch_first"}),
    rules=(
        *(TensorRule((name,), (name,)) for name in ("source_embed.weight", "target_embed.weight", "head.weight")),
        *(TensorRule((name,), (name,)) for name in ("encoder.added.weight", "decoder.added.weight")),
        *rename_stack("encoder", {"attention": "self_attn"}),
        *rename_stack("decoder", {"self_attention": "self_attn", "cross_attention": "multihead_attn"}),
    ),
)


def describe_transformer(theirs: nn.Transformer) -> dict[str, Any]:
    """The arguments that an `nn.Transformer` was made with, as `convert_config` takes them.

    >>> describe_transformer(nn.Transformer(8, 2, 1, 3, 20, norm_first=True))["dim_feedforward"]
    20
    """
    described = [describe_layer(layer) for stack in (theirs.encoder, theirs.decoder) for layer in stack.layers]
    described += [{"layer_norm_eps": norm.eps} for norm in theirs.modules() if isinstance(norm, nn.LayerNorm)]
    for key, value in described[0].items():
        other = next((one[key] for one in described if one.get(key, value) != value), value)
        if other != value:
            raise ModelError(
                f"the layers of the nn.Transformer have {key}={value!r} and {other!r}, but ours are all alike; "
                "keep the nn.Transformer"
            )
    stacks = {f"num_{side}_layers": len(getattr(theirs, side).layers) for side in ("encoder", "decoder")}
    return {**stacks, **described[0]}


def describe_layer(layer: nn.Module) -> dict[str, Any]:
    """What one layer of an `nn.Transformer` was made with."""
    if not isinstance(layer, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        raise ModelError(f"a layer of the nn.Transformer is a {type(layer).__name__}, which has no table here")
    bend: Any = layer.activation
    return {
        "d_model": layer.self_attn.embed_dim,
        "nhead": layer.self_attn.num_heads,
        "dim_feedforward": layer.linear1.out_features,
        "dropout": layer.dropout.p,
        "activation": ACTIVATIONS.get(bend, getattr(bend, "__name__", repr(bend))),
        "layer_norm_eps": layer.norm1.eps,
        "norm_first": layer.norm_first,
        "bias": layer.linear1.bias is not None,
    }
