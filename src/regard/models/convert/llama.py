"""Llama of `transformers` (`LlamaForCausalLM`) as our `Llama`, and what it shares with those that are built like it.

Both turn channels i and i + d/2 of a head as a pair, so that no rows are reordered; files of llama2.c and llama.cpp,
which turn neighbours, want `half_to_interleaved`.
"""

from collections.abc import Mapping
from typing import Any

from regard.models.convert.configs import IGNORED
from regard.models.convert.llama_config import flatten_rope, nest_rope
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename
from regard.models.llama import LlamaConfig

OURS, THEIRS = "blocks.{layer}", "model.layers.{layer}"
SCALINGS = {"default": "none", "linear": "linear", "llama3": "llama3"}

KEYS = (
    ConfigKey("vocab_size", "vocab_size"),
    ConfigKey("hidden_size", "width"),
    ConfigKey("num_attention_heads", "heads"),
    ConfigKey("num_hidden_layers", "layers"),
    ConfigKey("intermediate_size", "hidden"),
    ConfigKey("head_dim", "head_width", default=None),
    ConfigKey("rms_norm_eps", "norm_eps", default=1e-6),
    ConfigKey("rope_theta", "rope_base", default=10000.0),
    ConfigKey("rope_type", "rope_scaling", "default", SCALINGS),
    ConfigKey("factor", "rope_factor", default=1.0),
    ConfigKey("low_freq_factor", "rope_low_frequency", default=1.0),
    ConfigKey("high_freq_factor", "rope_high_frequency", default=4.0),
    ConfigKey("original_max_position_embeddings", "rope_original_context", default=8192),
    ConfigKey("tie_word_embeddings", "tied", default=False),
)
FIXED = {
    "hidden_act": "silu",
    "partial_rotary_factor": 1.0,
    "pruned_heads": {},
    "tie_encoder_decoder": False,
    "add_cross_attention": False,
}
RULES = (
    TensorRule(("embed.weight",), ("model.embed_tokens.weight",)),
    *rename(f"{OURS}.around_attention.norm", f"{THEIRS}.input_layernorm"),
    *(
        rule
        for ours, theirs in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "o"))
        for rule in rename(f"{OURS}.attention.to_{ours}", f"{THEIRS}.self_attn.{theirs}_proj")
    ),
    *(
        rule
        for name in ("q_norm", "k_norm")
        for rule in rename(f"{OURS}.attention.{name}", f"{THEIRS}.self_attn.{name}")
    ),
    *rename(f"{OURS}.around_feed_forward.norm", f"{THEIRS}.post_attention_layernorm"),
    *(
        rule
        for ours, theirs in (("gate", "gate"), ("hidden", "up"), ("out", "down"))
        for rule in rename(f"{OURS}.feed_forward.to_{ours}", f"{THEIRS}.mlp.{theirs}_proj")
    ),
    *rename("norm", "model.norm"),
    TensorRule(("head.weight",), ("lm_head.weight",)),
)


def describe_like_llama(
    family: str, architecture: str, *keys: ConfigKey, always: Mapping[str, Any], **more: Any
) -> ConversionTable:
    """The table of a family that is built like Llama: what it has beside the keys of all of them."""
    parts: dict[str, Any] = {"fixed": FIXED, "flatten": flatten_rope, "nest": nest_rope} | more
    return ConversionTable(
        family=family,
        config=LlamaConfig,
        architecture=lambda config: architecture,
        keys=(*KEYS, *keys),
        always=always,
        ignored=IGNORED | {"attention_dropout", "is_llama_config", "pretraining_tp", "transformers.js_config"},
        rules=RULES,
        prefix="model.",
        copies=lambda config: {"lm_head.weight": "model.embed_tokens.weight"} if config.tied else {},
        leftovers=(f"{THEIRS}.self_attn.rotary_emb.inv_freq",),
        **parts,
    )


LLAMA = describe_like_llama(
    "llama",
    "LlamaForCausalLM",
    ConfigKey("max_position_embeddings", "context", default=2048),
    ConfigKey("num_key_value_heads", "kv_heads", default=None),
    ConfigKey("attention_bias", "qkv_bias", default=False),
    ConfigKey("attention_bias", "out_bias", default=False),
    ConfigKey("mlp_bias", "mlp_bias", default=False),
    always={"qk_norm": False, "window": None, "window_from": 0},
    fixed=FIXED | {"rope_interleaved": False},
)
