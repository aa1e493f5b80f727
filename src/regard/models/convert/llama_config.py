"""Keys of the configs of Llama and its kind that versions of `transformers` put in different places, made plain."""

from typing import Any

from regard.errors import ModelError

# What `rope_scaling` holds beside its type, and what it must hold.
STRETCHED = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}
FULL, SLIDING = "full_attention", "sliding_attention"


def flatten_rope(config: dict[str, Any]) -> dict[str, Any]:
    """The config with `rope_theta`, `rope_type` and what belongs to it as keys of their own.

    Older files have `rope_theta`, and `rope_scaling` if there is any; newer ones `rope_parameters`. A `head_dim`
    that is hidden_size / num_attention_heads says nothing new.

    >>> flatten_rope({"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}})
    {'rope_theta': 500000.0, 'rope_type': 'default'}
    """
    rope: dict[str, Any] = {}
    for name in ("rope_scaling", "rope_parameters"):
        rope |= config.pop(name, None) or {}
    if "type" in rope:
        rope.setdefault("rope_type", rope.pop("type"))
    kind = rope.get("rope_type", "default")
    lacking = [name for name in STRETCHED.get(kind, ()) if name not in rope]
    if lacking:
        raise ModelError(f"the config has rope_type={kind!r} without {lacking[0]}; save the model again with it")
    if config.get("hidden_act") == "swish":
        config["hidden_act"] = "silu"  # two names of one function
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if "head_dim" in config and config["head_dim"] in (None, *([width / heads] if width and heads else [])):
        del config["head_dim"]
    return config | rope


def nest_rope(config: dict[str, Any]) -> dict[str, Any]:
    """The way back, as every version reads it: `rope_theta` and `rope_scaling`; what follows from others is said."""
    kind = config.pop("rope_type")
    values = {name: config.pop(name) for name in STRETCHED["llama3"]}
    scaling = {"rope_type": kind} | {name: values[name] for name in STRETCHED[kind]}
    heads = config["num_attention_heads"]
    return config | {
        "rope_scaling": None if kind == "default" else scaling,
        "head_dim": config["head_dim"] or config["hidden_size"] // heads,
        "num_key_value_heads": config["num_key_value_heads"] or heads,
    }


def flatten_windows(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a Qwen with `sliding_window`, and `max_window_layers`, the first layer with it, alone.

    The window counts where `use_sliding_window` says so. `layer_types` name each layer, and agree with
    `max_window_layers` where all layers with a window stand at the end.

    >>> flatten_windows({"use_sliding_window": True, "sliding_window": 4, "layer_types": [FULL, SLIDING, SLIDING]})
    {'sliding_window': 4, 'max_window_layers': 1}
    """
    is_used, window = config.pop("use_sliding_window", False), config.pop("sliding_window", 4096)
    first, layers = config.pop("max_window_layers", 28), config.get("num_hidden_layers", 0)
    types = config.pop("layer_types", None)
    window = window if is_used else None
    if types is not None:
        first = types.index(SLIDING) if SLIDING in types else len(types)
        if types != [FULL] * first + [SLIDING] * (len(types) - first) or (window is None and SLIDING in types):
            raise ModelError(
                f"the config has layer_types={types!r} with a sliding_window of {window!r}, but layers with a window "
                "stand after all others in our Llama; keep the model of that library"
            )
        layers = len(types)
    if window is None or (layers and first >= layers):
        window, first = None, 0
    return config | {"sliding_window": window, "max_window_layers": first}


def nest_windows(config: dict[str, Any]) -> dict[str, Any]:
    """The way back."""
    window = config["sliding_window"]
    first = config["num_hidden_layers"] if window is None else config["max_window_layers"]
    return config | {"use_sliding_window": window is not None, "max_window_layers": first}


def flatten_qwen(config: dict[str, Any]) -> dict[str, Any]:
    """Both."""
    return flatten_rope(flatten_windows(config))


def nest_qwen(config: dict[str, Any]) -> dict[str, Any]:
    """Both."""
    return nest_windows(nest_rope(config))
