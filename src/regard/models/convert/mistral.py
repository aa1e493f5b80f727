"""Mistral of `transformers` (`MistralForCausalLM`) as our `Llama` with a window."""

from typing import Any

from regard.models.convert.llama import describe_like_llama
from regard.models.convert.llama_config import flatten_rope
from regard.models.convert.table import ConfigKey


def flatten_mistral(config: dict[str, Any]) -> dict[str, Any]:
    """There are 8 key heads and a window of 4096 where nothing says otherwise."""
    return flatten_rope({"num_key_value_heads": 8, "sliding_window": 4096} | config)


MISTRAL = describe_like_llama(
    "mistral",
    "MistralForCausalLM",
    ConfigKey("max_position_embeddings", "context", default=4096 * 32),
    ConfigKey("num_key_value_heads", "kv_heads", default=None),
    ConfigKey("sliding_window", "window", default=None),
    always={"qkv_bias": False, "out_bias": False, "mlp_bias": False, "qk_norm": False, "window_from": 0},
    flatten=flatten_mistral,
)
