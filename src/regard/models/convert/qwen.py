"""Qwen 2 and 3 of `transformers` as our `Llama`: with biases of q, k and v, and with norms of q and k."""

from typing import Any

from regard.models.convert.llama import describe_like_llama
from regard.models.convert.llama_config import flatten_qwen, nest_qwen
from regard.models.convert.table import ConfigKey

KEYS = (
    ConfigKey("max_position_embeddings", "context", default=32768),
    ConfigKey("num_key_value_heads", "kv_heads", default=None),
    ConfigKey("sliding_window", "window", default=None),
    ConfigKey("max_window_layers", "window_from", default=0),
)


def flatten_qwen2(config: dict[str, Any]) -> dict[str, Any]:
    """There are 32 key heads where nothing says otherwise."""
    return flatten_qwen({"num_key_value_heads": 32} | config)


QWEN2 = describe_like_llama(
    "qwen2",
    "Qwen2ForCausalLM",
    *KEYS,
    always={"qkv_bias": True, "out_bias": False, "mlp_bias": False, "qk_norm": False},
    flatten=flatten_qwen2,
    nest=nest_qwen,
)


def flatten_qwen3(config: dict[str, Any]) -> dict[str, Any]:
    """Heads have 128 channels where nothing says otherwise."""
    return flatten_qwen2({"head_dim": 128} | config)


QWEN3 = describe_like_llama(
    "qwen3",
    "Qwen3ForCausalLM",
    *KEYS,
    ConfigKey("attention_bias", "qkv_bias", default=False),
    ConfigKey("attention_bias", "out_bias", default=False),
    always={"mlp_bias": False, "qk_norm": True},
    flatten=flatten_qwen3,
    nest=nest_qwen,
)
