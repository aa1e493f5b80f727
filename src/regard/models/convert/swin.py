"""Swin of `transformers` as our `Swin`: the body, and the head that `architectures` names."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from regard.errors import ModelError
from regard.models.convert.bert import ACTIVATIONS
from regard.models.convert.table import ConfigKey, ConversionTable, Prepared, TensorRule, rename
from regard.models.convert.vision import (
    CLASSIFIES,
    PICTURE_KEYS,
    UNREAD,
    flatten_picture,
    nest_picture,
    rename_tensors,
)
from regard.models.convert.vit import TABLE
from regard.models.swin_config import SwinConfig

STAGES = 16  # more would need cells of 2^16 channels
NEWER = {  # names that version 5 has in memory → those of files
    r"\battention\.q_proj\.": "attention.self.query.",
    r"\battention\.k_proj\.": "attention.self.key.",
    r"\battention\.v_proj\.": "attention.self.value.",
    r"\battention\.relative_position_bias\.": "attention.self.",
    r"\battention\.o_proj\.": "attention.output.dense.",
    r"\bmlp\.fc1\.": "intermediate.dense.",
    r"\bmlp\.fc2\.": "output.dense.",
}


def flatten_swin(config: dict[str, Any]) -> dict[str, Any]:
    """Plain keys, with lists as they stand in JSON."""
    config = flatten_picture(config, image_size=224, patch_size=4)
    for name in ("depths", "num_heads"):
        if isinstance(config.get(name), tuple):
            config[name] = list(config[name])
    if not 0 < len(config.get("depths", [1])) <= STAGES:
        raise ModelError(f"the config has {len(config['depths'])} stages, wanted 1 to {STAGES}; correct depths")
    return config


def prepare_swin(config: dict[str, Any], state: Mapping[str, Tensor]) -> Prepared:
    """The names of files."""
    return config, rename_tensors(state, NEWER)


def stage_rules(stage: int) -> Iterator[TensorRule]:
    """The tensors of one stage."""
    ours, theirs = f"stages.{stage}.blocks.{{layer}}", f"swin.encoder.layers.{stage}.blocks.{{layer}}"
    for mine, other in {"q": "self.query", "k": "self.key", "v": "self.value", "out": "output.dense"}.items():
        yield from rename(f"{ours}.attention.to_{mine}", f"{theirs}.attention.{other}")
    table = f"{theirs}.attention.self.relative_position_bias_table"
    yield TensorRule((f"{ours}.attention.positions.weight",), (table,))
    yield from rename(f"{ours}.around_attention.norm", f"{theirs}.layernorm_before")
    yield from rename(f"{ours}.around_feed_forward.norm", f"{theirs}.layernorm_after")
    yield from rename(f"{ours}.feed_forward.to_hidden", f"{theirs}.intermediate.dense")
    yield from rename(f"{ours}.feed_forward.to_out", f"{theirs}.output.dense")
    yield from rename(f"stages.{stage}.merge.norm", f"swin.encoder.layers.{stage}.downsample.norm")
    yield from rename(f"stages.{stage}.merge.reduce", f"swin.encoder.layers.{stage}.downsample.reduction")


SWIN = ConversionTable(
    family="swin",
    config=SwinConfig,
    flatten=flatten_swin,
    nest=nest_picture,
    prepare=prepare_swin,
    keys=(
        *PICTURE_KEYS,
        ConfigKey("patch_size", "patch_size"),
        ConfigKey("embed_dim", "width", default=96),
        ConfigKey("depths", "depths", default=[2, 2, 6, 2]),
        ConfigKey("num_heads", "heads", default=[3, 6, 12, 24]),
        ConfigKey("window_size", "window", default=7),
        ConfigKey("mlp_ratio", "mlp_ratio", default=4.0),
        ConfigKey("qkv_bias", "qkv_bias", default=True),
        ConfigKey("hidden_act", "activation", "gelu", ACTIVATIONS),
        ConfigKey("use_absolute_embeddings", "absolute", default=False),
        ConfigKey("layer_norm_eps", "norm_eps", default=1e-5),
        ConfigKey("architecture", "head", "SwinModel", {"SwinModel": "none", f"Swin{CLASSIFIES}": "classify"}),
    ),
    always={"sees_padding": True},
    ignored=UNREAD | {"hidden_size", "num_layers", "num_hidden_layers", "num_attention_heads"},  # which follow
    rules=(
        *rename("patches", "swin.embeddings.patch_embeddings.projection"),
        *rename("embed_norm", "swin.embeddings.norm"),
        TensorRule(("added.weight",), ("swin.embeddings.position_embeddings",), (TABLE,)),
        *(rule for stage in range(STAGES) for rule in stage_rules(stage)),
        *rename("norm", "swin.layernorm"),
        *rename("classifier", "classifier"),
    ),
    prefix="swin.",
    headless=lambda config: config.head == "none",
    leftovers=(
        "swin.embeddings.mask_token",
        "swin.encoder.layers.{layer}.blocks.{layer}.attention.self.relative_position_index",
    ),
)
