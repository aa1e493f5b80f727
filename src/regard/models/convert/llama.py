"""Llama of `transformers` (`LlamaForCausalLM`) as our `GPT`.

Both turn channels i and i + d/2 of a head as a pair, so that no rows are reordered; files of llama2.c and llama.cpp,
which turn neighbours, want `half_to_interleaved`.
"""

from typing import Any

from regard.models.convert.configs import IGNORED
from regard.models.convert.table import ConfigKey, ConversionTable, TensorRule, rename
from regard.models.gpt import GPTConfig

OURS, THEIRS = "blocks.{layer}", "model.layers.{layer}"


def flatten_rope(config: dict[str, Any]) -> dict[str, Any]:
    """The config with `rope_theta` and `rope_type` as keys of their own, wherever its version of the library put them.

    Older files have `rope_theta`, and `rope_scaling` if there is any; newer ones `rope_parameters`. A `head_dim`
    that is hidden_size / num_attention_heads says nothing new.
    """
    rope: dict[str, Any] = {}
    for name in ("rope_scaling", "rope_parameters"):
        rope |= config.pop(name, None) or {}
    if "type" in rope:
        rope.setdefault("rope_type", rope.pop("type"))
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if "head_dim" in config and config["head_dim"] in (None, *([width / heads] if width and heads else [])):
        del config["head_dim"]
    return config | rope


LLAMA = ConversionTable(
    family="llama",
    config=GPTConfig,
    flatten=flatten_rope,
    keys=(
        ConfigKey("vocab_size", "vocab_size"),
        ConfigKey("hidden_size", "width"),
        ConfigKey("num_attention_heads", "heads"),
        ConfigKey("num_hidden_layers", "layers"),
        ConfigKey("max_position_embeddings", "context", default=2048),
        ConfigKey("num_key_value_heads", "kv_heads", default=None),
        ConfigKey("intermediate_size", "hidden"),
        ConfigKey("hidden_act", "activation", "silu", {"silu": "swiglu", "swish": "swiglu"}),
        ConfigKey("attention_bias", "bias", default=False),
        ConfigKey("mlp_bias", "bias", default=False),
        ConfigKey("rms_norm_eps", "norm_eps", default=1e-6, unset=1e-6),
        ConfigKey("rope_theta", "rotary_base", default=10000.0),
        ConfigKey("tie_word_embeddings", "tied", default=False),
    ),
    always={"positions": "rotary", "norm": "rms"},
    fixed={
        "rope_type": "default",
        "rope_interleaved": False,
        "partial_rotary_factor": 1.0,
        "pruned_heads": {},
        "tie_encoder_decoder": False,
        "add_cross_attention": False,
    },
    ignored=IGNORED | {"attention_dropout", "is_llama_config", "pretraining_tp", "transformers.js_config"},
    rules=(
        TensorRule(("embed.weight",), ("model.embed_tokens.weight",)),
        *rename(f"{OURS}.around_attention.norm", f"{THEIRS}.input_layernorm"),
        *(
            rule
            for ours, theirs in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "o"))
            for rule in rename(f"{OURS}.attention.to_{ours}", f"{THEIRS}.self_attn.{theirs}_proj")
        ),
        *rename(f"{OURS}.around_feed_forward.norm", f"{THEIRS}.post_attention_layernorm"),
        *(
            rule
            for ours, theirs in (("gate", "gate"), ("hidden", "up"), ("out", "down"))
            for rule in rename(f"{OURS}.feed_forward.to_{ours}", f"{THEIRS}.mlp.{theirs}_proj")
        ),
        *rename("norm", "model.norm"),
        TensorRule(("head.weight",), ("lm_head.weight",)),
    ),
    prefix="model.",
    copies=lambda config: {"lm_head.weight": "model.embed_tokens.weight"} if config.tied else {},
    leftovers=(f"{THEIRS}.self_attn.rotary_emb.inv_freq",),
)
