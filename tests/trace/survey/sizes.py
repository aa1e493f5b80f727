"""Small settings of any configuration class of `transformers`: its defaults, made small by the names of its fields."""

import math
from typing import Any

WORDS = 97  # the vocabulary
TEXT = (5, 70)  # ids that stand for text; special ones lie above
HEAD, HEADS, WIDTH = 16, 4, 64
DROPPED = {
    "out_features",
    "out_indices",
    "stage_names",
    "architectures",
    "transformers_version",
    "_attn_implementation_internal",
    "dtype",
    "id2label",
    "label2id",
}
LAYERS = ("layers", "n_layer", "depth", "num_blocks", "num_encoder_blocks", "num_decoder_blocks", "resampler_depth")
PER_LAYER = (
    "per_layer_config",
    "num_attention_heads_per_layer",
    "full_attn_idxs",
    "moe_layers",
    "kv_source_layers",
    "rope_scaling_layers",
    "mlp_only_layers",
    "layer_types",
    "mlp_layer_types",
    "no_rope_layers",
    "attention_types",
    "sliding_windows",
    "layers_block_type",
)
HIDDEN = ("hidden_size", "d_model", "n_embd", "embed_dim", "embedding_size", "hidden_dim", "emb_dim", "width", "dim")


def small_config(config_class: type, level: int = 0, **more: Any) -> Any:
    """A configuration of this class with small sizes; level 1 only takes layers, words and experts away."""
    default = config_class()
    return config_class(**{**shrink(settings_of(default), level), **more})


def settings_of(config: Any) -> dict[str, Any]:
    """What a configuration was made of, with those inside it as dictionaries."""
    found = {}
    for name, value in config.to_dict().items():
        if name in DROPPED or name.startswith("_"):
            continue
        found[name] = value
    return found


def shrink(settings: dict[str, Any], level: int) -> dict[str, Any]:
    """The same settings with small numbers. What follows from others is left out, so that it follows anew."""
    kinds = list(dict.fromkeys(map(str, settings.get("layer_types") or ())))
    heads = settings.get("num_attention_heads") or settings.get("n_head") or settings.get("num_heads")
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in PER_LAYER:
            continue
        if name == "head_dim" and value is None and level == 0:
            value = HEAD
        if isinstance(value, dict):
            found[name] = shrink_inner(name, value, level)
        elif isinstance(value, list | tuple):
            found[name] = type(value)(shrink_list(name, list(value), level))
        elif isinstance(value, bool) or not isinstance(value, int):
            found[name] = value
        else:
            found[name] = shrink_number(name, value, level, heads)
    if len(kinds) > 1 and "num_hidden_layers" in found:  # one layer of each kind
        found |= {"layer_types": kinds, "num_hidden_layers": len(kinds)}
    if level == 0 and found.get("mamba_n_heads"):
        found |= {"mamba_n_heads": 8, "mamba_d_head": WIDTH * int(found.get("mamba_expand", 2)) // 8}
    return found


def shrink_inner(name: str, value: dict[str, Any], level: int) -> dict[str, Any]:
    if name.startswith("rope"):
        inner = dict(value)
        if "mrope_section" in inner and level == 0:
            inner["mrope_section"] = [2, 3, 3]
        return {key: shrink_inner(name, one, level) if isinstance(one, dict) else one for key, one in inner.items()}
    if "model_type" in value or name.endswith("config"):
        inner = shrink(without(value), level)
        rope = inner.get("rope_parameters")
        if name == "text_config" and level == 0 and isinstance(rope, dict) and "rope_theta" in rope:
            inner["rope_parameters"] = {"mrope_section": [2, 3, 3], **rope}  # where one of three axes is meant
        return {"model_type": value["model_type"], **inner} if "model_type" in value else inner
    return value


def without(value: dict[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in DROPPED and not key.startswith("_")}


def shrink_number(name: str, value: int, level: int, heads: Any) -> int:
    """One number, by what its name says."""
    if name.endswith(("token_id", "token_index", "_token_ids")) or name in ("ignore_index",):
        return value if value < TEXT[0] or TEXT[1] <= value < WORDS else special(name)
    if "vocab" in name and value > 32:
        return WORDS
    if name.endswith(LAYERS) and value > 2 and name not in ("num_feat_extract_layers",):
        return 2
    if "experts_per_tok" in name or name in ("moe_topk", "top_k_experts", "moe_k"):
        return min(value, 2)
    if "expert" in name and "size" not in name and "dim" not in name:
        return min(value, 4)
    if name in ("n_group", "topk_group", "num_expert_group"):
        return 1
    if level == 1:
        return value
    if "position" in name and "size" not in name and value > 128 and "temperature" not in name:
        return 128
    if name == "max_source_positions":
        return 32
    if name.endswith(("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_kv_head")):
        return value if value <= 1 else HEADS if value == heads else 2
    if (
        "head" in name
        and "dim" not in name
        and "size" not in name
        and value > 1
        and name.startswith(("num", "n_", "enc", "dec", "att", "text", "memory", "index", "linear", "mamba"))
    ):
        return min(value, HEADS)
    if name in ("d_kv", "kv_channels", "attention_head_size", "rotary_dim") or "head_dim" in name or name == "dim_head":
        return HEAD
    if name in HIDDEN or (
        name.endswith(("hidden_size", "d_model", "embed_dim", "hidden_dim")) and "intermediate" not in name
    ):
        return WIDTH if value >= WIDTH else value
    if "rank" in name and value > 24:
        return 24
    if name in ("image_size", "pretrain_image_size", "img_size"):
        return 64
    if name == "patch_size" and value > 8:
        return 16
    if name in ("num_mel_bins", "n_mels", "feature_size") and value >= 64:
        return 16 if value != 80 else 80
    if name.endswith(("intermediate_size", "ffn_dim", "d_ff", "d_inner", "n_inner", "mlp_dim", "intermediate_dim")):
        return 96 if value > 96 else value
    if name in ("sliding_window", "attention_window", "window") and value > 8:
        return 8
    if name.endswith(("_dim", "_size", "_channels", "channels", "dim")) and value >= 128 and "vocab" not in name:
        return WIDTH
    if name in ("num_queries", "num_query_tokens", "num_latents", "num_denoising") and value > 13:
        return 13
    return value


def shrink_list(name: str, value: list[Any], level: int) -> list[Any]:
    if not value or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        return value
    if name in ("depths", "num_block_repeats", "stage_num_blocks", "block_sizes", "num_layers", "depth", "layers"):
        return [min(one, 2) for one in value]
    if name.endswith(("indexes", "indices", "_layers", "layers_indices")):
        return [min(one, i + 1 if one > 0 else one) for i, one in enumerate(value[:2])]
    if level == 1:
        return value
    if name in ("conv_dim", "tdnn_dim"):
        return [WIDTH // 2 for _ in value]
    if name in ("image_size", "img_size"):
        return [64 for _ in value]
    if (
        name.endswith(("sizes", "dims", "widths", "embed_dim", "hidden_size"))
        and min(value) >= 32
        and max(value) < 5000
    ):
        shared = math.gcd(*value)
        by = next((b for b in (8, 4, 2) if shared % (b * 8) == 0), 1)
        return [one // by for one in value]
    return value


SPECIAL = ("pad", "bos", "eos", "start", "image", "video", "audio", "vision", "end", "mask", "sep", "cls", "boi", "eoi")


def special(name: str) -> int:
    """An id beyond the text for a special token, the same for the same name."""
    return TEXT[1] + 2 + sum(map(ord, name)) % (WORDS - TEXT[1] - 3)
