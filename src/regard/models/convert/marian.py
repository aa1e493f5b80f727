"""Marian of `transformers` (`MarianMTModel`) as our `Translator`.

Their waves are all sines, then all cosines, ours alternate; so the channels of the residual stream are reordered, which
changes nothing else. A bias of the logits and "swish" have no counterpart in ours: published OPUS models are refused.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from regard.models.convert.configs import IGNORED
from regard.models.convert.operations import interleave
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename
from regard.models.translator import TranslatorConfig
from regard.positions import Sinusoid


def fill_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """The config with what a missing key means where that is not what ours is made with."""
    target = config.get("decoder_vocab_size") or config.get("vocab_size")
    return {"scale_embedding": False, **config, "decoder_vocab_size": target}


def rename_writer(ours: str, theirs: str) -> Iterator[TensorRule]:
    """Rules for a module whose output channels are those of the residual stream."""
    for end in ("weight", "bias"):
        yield TensorRule((f"{ours}.{end}",), (f"{theirs}.{end}",), (interleave(0),))


def rename_stack(side: str, attentions: dict[str, str]) -> Iterator[TensorRule]:
    """Rules for one stack; `attentions` are the names of ours and theirs."""
    ours, theirs = f"{side}.blocks.{{layer}}", f"model.{side}.layers.{{layer}}"
    for mine, other in attentions.items():
        for letter in "qkv":
            yield from rename(f"{ours}.{mine}.to_{letter}", f"{theirs}.{other}.{letter}_proj", interleave(1))
        yield from rename_writer(f"{ours}.{mine}.to_out", f"{theirs}.{other}.out_proj")
        yield from rename_writer(f"{ours}.around_{mine}.norm", f"{theirs}.{other}_layer_norm")
    yield from rename(f"{ours}.feed_forward.to_hidden", f"{theirs}.fc1", interleave(1))
    yield from rename_writer(f"{ours}.feed_forward.to_out", f"{theirs}.fc2")
    yield from rename_writer(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm")


def list_copies(config: TranslatorConfig) -> dict[str, str]:
    """The names under which their tensors stand a second time: embeddings of both sides, and the head."""
    source, target = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    copies = {"model.shared.weight": source, target: source} if config.shared else {}
    return copies | ({"lm_head.weight": source if config.shared else target} if config.tied else {})


def make_waves(config: TranslatorConfig) -> Tensor:
    """What is added at each position, in the order of their channels."""
    return interleave(1).to_theirs((Sinusoid(config.width).table(config.context, torch.float64),))[0]


MARIAN = ConversionTable(
    family="marian",
    config=TranslatorConfig,
    flatten=fill_defaults,
    keys=(
        ConfigKey("vocab_size", "source_vocab_size"),
        ConfigKey("decoder_vocab_size", "target_vocab_size"),
        ConfigKey("d_model", "width"),
        ConfigKey("encoder_attention_heads", "heads"),
        ConfigKey("decoder_attention_heads", "heads"),
        ConfigKey("encoder_layers", "layers"),
        ConfigKey("decoder_layers", "decoder_layers"),
        ConfigKey("encoder_ffn_dim", "hidden"),
        ConfigKey("decoder_ffn_dim", "hidden"),
        ConfigKey("activation_function", "activation", "gelu", {"gelu": "gelu", "relu": "relu"}),
        ConfigKey("max_position_embeddings", "context", default=1024),
        ConfigKey("pad_token_id", "pad"),
        ConfigKey("share_encoder_decoder_embeddings", "shared", default=True),
        ConfigKey("tie_word_embeddings", "tied", default=True),
    ),
    always={"order": "post", "positions": "sinusoid", "norm": "layer", "bias": True, "attention": "scaled dot"},
    fixed={
        "scale_embedding": True,
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "normalize_before": False,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "add_cross_attention": False,
    },
    ignored=IGNORED
    | {"activation_dropout", "attention_dropout", "classif_dropout", "classifier_dropout", "dropout"}
    | {"decoder_layerdrop", "encoder_layerdrop", "gradient_checkpointing", "init_std", "num_hidden_layers"},
    rules=(
        TensorRule(("source_embed.weight",), ("model.encoder.embed_tokens.weight",), (interleave(1),)),
        TensorRule(("target_embed.weight",), ("model.decoder.embed_tokens.weight",), (interleave(1),)),
        *rename_stack("encoder", {"attention": "self_attn"}),
        *rename_stack("decoder", {"self_attention": "self_attn", "cross_attention": "encoder_attn"}),
        TensorRule(("head.weight",), ("lm_head.weight",), (interleave(1),)),
    ),
    copies=list_copies,
    constants={
        "final_logits_bias": lambda config: torch.zeros(1, config.target_vocab_size),
        **{f"model.{side}.embed_positions.weight": make_waves for side in ("encoder", "decoder")},
    },
)
