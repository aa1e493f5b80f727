"""A `GPT` that is a GPT-2 or a Llama, as such: its weights have the same names."""

from typing import Any

from regard.errors import ModelError
from regard.models.gpt import GPTConfig
from regard.models.gpt2 import Gpt2Config
from regard.models.llama import LlamaConfig
from regard.models.parts import choose_hidden

SHARED = ("vocab_size", "width", "heads", "layers", "context", "tied")


def specialize(config: Any) -> Any:
    """The `Gpt2Config` or `LlamaConfig` that a `GPTConfig` amounts to; every other config as it is.

    >>> sizes = {"vocab_size": 11, "width": 8, "heads": 2, "layers": 1, "context": 16}
    >>> specialize(GPTConfig(**sizes, norm_eps=0.1)).norm_eps
    0.1
    """
    if not isinstance(config, GPTConfig):
        return config
    sizes = {name: getattr(config, name) for name in SHARED}
    built = (config.norm, config.positions, config.activation == "swiglu", config.hidden != 0)
    if built == ("layer", "learned", False, True) and config.bias and config.kv_heads is None:
        eps = 1e-5 if config.norm_eps is None else config.norm_eps
        return Gpt2Config(**sizes, hidden=config.hidden, activation=config.activation, norm_eps=eps)
    if built == ("rms", "rotary", True, True):
        return LlamaConfig(
            **sizes,
            hidden=choose_hidden(config.width, config.hidden),
            kv_heads=config.kv_heads,
            norm_eps=1e-6 if config.norm_eps is None else config.norm_eps,
            rope_base=config.rotary_base,
            qkv_bias=config.bias,
            out_bias=config.bias,
            mlp_bias=config.bias,
        )
    raise ModelError(
        f"a GPT with positions={config.positions!r}, norm={config.norm!r}, activation={config.activation!r}, "
        f"bias={config.bias} and hidden={config.hidden} came, but transformers has only those that are built as GPT-2 "
        "or Llama; save the model in the layout of regard"
    )
