"""ViT, DeiT and DINOv2 of `transformers` as our `Vit`: the body, and the head that `architectures` names."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.errors import ModelError
from regard.models.convert.bert import ACTIVATIONS
from regard.models.convert.operations import Operation
from regard.models.convert.table import ConfigKey, ConversionTable, Prepared, TensorRule, rename
from regard.models.convert.vision import (
    CLASSIFIES,
    PICTURE_KEYS,
    UNREAD,
    flatten_picture,
    nest_picture,
    rename_tensors,
    shape_tensor,
)
from regard.models.vit_config import VitConfig

VECTOR = Operation("(1, 1, m) → (m,)", shape_tensor(lambda x: x.reshape(-1)), shape_tensor(lambda x: x[None, None]))
TABLE = Operation("(1, t, m) → (t, m)", shape_tensor(lambda x: x[0]), shape_tensor(lambda x: x[None]))
SPLIT_FIRST = Operation(
    "split the first in 2",
    lambda tensors: (*tensors[0].chunk(2), *tensors[1:]),
    lambda tensors: (torch.cat(tensors[:2]), *tensors[2:]),
)
NEWER = {  # names that version 5 has in memory → those of files
    r"\battention\.([qkv])_proj\.": r"attention.attention.\1_proj.",
    r"\bq_proj\.": "query.",
    r"\bk_proj\.": "key.",
    r"\bv_proj\.": "value.",
    r"\battention\.o_proj\.": "attention.output.dense.",
}
NEWER_VIT = NEWER | {
    r"^((?:vit|deit)\.)?layers\.": r"\1encoder.layer.",
    r"\bmlp\.fc1\.": "intermediate.dense.",
    r"\bmlp\.fc2\.": "output.dense.",
}


def sizes_of_blocks(eps: float) -> tuple[ConfigKey, ...]:
    """The keys that all three families share."""
    return (
        *PICTURE_KEYS,
        ConfigKey("patch_size", "patch_size"),
        ConfigKey("hidden_size", "width", default=768),
        ConfigKey("num_attention_heads", "heads", default=12),
        ConfigKey("num_hidden_layers", "layers", default=12),
        ConfigKey("qkv_bias", "qkv_bias", default=True),
        ConfigKey("layer_norm_eps", "norm_eps", default=eps),
    )


def flatten_vit(config: dict[str, Any]) -> dict[str, Any]:
    """Plain keys; the pooler must be as wide as the tokens, where there is one."""
    width, size = config.get("hidden_size", 768), config.pop("pooler_output_size", None)
    if config.get("pooler") and size not in (None, width):
        raise ModelError(
            f"the config has pooler_output_size={size!r} and hidden_size={width!r}, but our pooler keeps the width; "
            "keep the model of that library"
        )
    return {"pooler": False} | flatten_picture(config, image_size=224, patch_size=16)


def prepare_vit(body: str) -> Callable[[dict[str, Any], Mapping[str, Tensor]], Prepared]:
    """A `prepare` that finds out whether there is a pooler, which no config says."""

    def prepare(config: dict[str, Any], state: Mapping[str, Tensor]) -> Prepared:
        pooler = any(name in state for name in (f"{body}.pooler.dense.weight", "pooler.dense.weight"))
        return config | {"pooler": pooler}, rename_tensors(state, NEWER_VIT)

    return prepare


def nest_vit(config: dict[str, Any]) -> dict[str, Any]:
    """Their config, in which the pooler is no key, but its width one."""
    return nest_picture({name: value for name, value in config.items() if name != "pooler"})


def body_rules(body: str) -> Iterator[TensorRule]:
    """The tensors of embeddings, attention and the last norm, whose names begin with that of the body."""
    ours, theirs = "blocks.{layer}.attention", f"{body}.encoder.layer.{{layer}}.attention"
    yield TensorRule(("cls_token",), (f"{body}.embeddings.cls_token",), (VECTOR,))
    yield TensorRule(("dist_token",), (f"{body}.embeddings.distillation_token",), (VECTOR,))
    yield TensorRule(("added.weight",), (f"{body}.embeddings.position_embeddings",), (TABLE,))
    yield from rename("patches", f"{body}.embeddings.patch_embeddings.projection")
    for mine, other in {"q": "attention.query", "k": "attention.key", "v": "attention.value"}.items():
        yield from rename(f"{ours}.to_{mine}", f"{theirs}.{other}")
    yield from rename(f"{ours}.to_out", f"{theirs}.output.dense")
    yield from rename("norm", f"{body}.layernorm")


def vit_rules(body: str) -> Iterator[TensorRule]:
    """All tensors of a ViT or DeiT but those of its classifiers."""
    ours, theirs = "blocks.{layer}", f"{body}.encoder.layer.{{layer}}"
    yield from body_rules(body)
    yield from rename(f"{ours}.around_attention.norm", f"{theirs}.layernorm_before")
    yield from rename(f"{ours}.around_feed_forward.norm", f"{theirs}.layernorm_after")
    yield from rename(f"{ours}.feed_forward.to_hidden", f"{theirs}.intermediate.dense")
    yield from rename(f"{ours}.feed_forward.to_out", f"{theirs}.output.dense")
    yield from rename("pooler", f"{body}.pooler.dense")


def is_headless(config: VitConfig) -> bool:
    """Whether a model of this config is stored as a body alone."""
    return config.head == "none"


def resolve_sizes(config: VitConfig) -> VitConfig:
    """The config with the size of its feed-forward networks as a number."""
    return replace(config, hidden=config.block.hidden)


VIT = ConversionTable(
    family="vit",
    config=VitConfig,
    flatten=flatten_vit,
    resolve=resolve_sizes,
    nest=nest_vit,
    prepare=prepare_vit("vit"),
    keys=(
        *sizes_of_blocks(1e-12),
        ConfigKey("intermediate_size", "hidden", default=3072),
        ConfigKey("hidden_act", "activation", "gelu", ACTIVATIONS),
        ConfigKey("architecture", "head", "ViTModel", {"ViTModel": "none", f"ViT{CLASSIFIES}": "classify"}),
        ConfigKey("pooler", "pooler", default=False),
    ),
    always={
        "pooling": "cls", "cls_token": True, "dist_token": False, "registers": 0, "positions": "learned",
        "layer_scale": None,
    },
    fixed={"pooler_act": "tanh"},
    ignored=UNREAD,
    rules=(*vit_rules("vit"), *rename("classifier", "classifier")),
    prefix="vit.",
    headless=is_headless,
    leftovers=("vit.embeddings.mask_token",),
)  # fmt: skip

TAUGHT = f"DeiT{CLASSIFIES}WithTeacher"
DEIT = replace(
    VIT,
    family="deit",
    prepare=prepare_vit("deit"),
    keys=tuple(
        replace(key, default="DeiTModel", values={
            "DeiTModel": "none", f"DeiT{CLASSIFIES}": "classify", TAUGHT: "distilled",
        }) if key.theirs == "architecture" else key for key in VIT.keys
    ),
    always={**VIT.always, "dist_token": True},
    rules=(
        *vit_rules("deit"),
        *(replace(rule, unless="dist_classifier.weight") for rule in rename("classifier", "classifier")),
        *(
            TensorRule(
                (f"classifier.{end}", f"dist_classifier.{end}"),
                (f"cls_classifier.{end}", f"distillation_classifier.{end}"),
            )
            for end in ("weight", "bias")
        ),
    ),
    prefix="deit.",
    leftovers=("deit.embeddings.mask_token",),
)  # fmt: skip


def gated_size(width: int, ratio: int | float) -> int:
    """The channels of the gated network of a DINOv2: two thirds of the usual, up to the next multiple of 8."""
    return (int(width * ratio * 2 / 3) + 7) // 8 * 8


def flatten_dinov2(config: dict[str, Any]) -> dict[str, Any]:
    """Plain keys, and the size of the feed-forward networks in place of its ratio to the width."""
    config = {"pooler": False} | flatten_picture(config, image_size=224, patch_size=14)
    width, ratio, gated = (
        config.get("hidden_size", 768),
        config.pop("mlp_ratio", 4),
        config.pop("use_swiglu_ffn", False),
    )
    if type(width) is not int or not isinstance(ratio, int | float) or not 0 < ratio < float("inf"):
        raise ModelError(f"the config has hidden_size={width!r} and mlp_ratio={ratio!r}, wanted numbers; correct them")
    if gated:
        config["hidden_act"] = "swiglu"
    return config | {"hidden": gated_size(width, ratio) if gated else int(width * ratio)}


def prepare_dinov2(config: dict[str, Any], state: Mapping[str, Tensor]) -> Prepared:
    """The names of files; the two matrices that version 5 has of a gated network in memory are one there."""
    named = rename_tensors(state, NEWER)
    for name in [name for name in named if ".mlp.gate_proj." in name and name.replace(".gate_", ".up_") in named]:
        pair = named.pop(name), named.pop(name.replace(".gate_", ".up_"))
        named[name.replace(".gate_proj.", ".weights_in.")] = torch.cat(pair)
    return config, rename_tensors(named, {r"\.mlp\.down_proj\.": ".mlp.weights_out."})


def nest_dinov2(config: dict[str, Any]) -> dict[str, Any]:
    """The way back, refused where no ratio gives the size."""
    hidden, width = config.pop("hidden"), config["hidden_size"]
    gated = config["hidden_act"] == "swiglu"
    sizes = {gated_size(width, ratio) if gated else width * ratio: ratio for ratio in range(64, 0, -1)}
    if hidden not in sizes:
        raise ModelError(
            f"the feed-forward network has {hidden} channels, which no ratio gives to a DINOv2 of width {width}; save "
            "the model in the layout of regard"
        )
    config = nest_vit(config) | {"mlp_ratio": sizes[hidden], "use_swiglu_ffn": gated}
    return config | ({"hidden_act": "gelu"} if gated else {})


def dinov2_rules() -> Iterator[TensorRule]:
    """The tensors of blocks that the other two families name otherwise, or do not have."""
    ours, theirs = "blocks.{layer}", "dinov2.encoder.layer.{layer}"
    yield from body_rules("dinov2")
    for number, around in ((1, "around_attention"), (2, "around_feed_forward")):
        yield from rename(f"{ours}.{around}.norm", f"{theirs}.norm{number}")
        yield TensorRule((f"{ours}.{around}.scale",), (f"{theirs}.layer_scale{number}.lambda1",))
    for end in ("weight", "bias"):
        gate, hidden, out = (f"{ours}.feed_forward.to_{name}.{end}" for name in ("gate", "hidden", "out"))
        gated = tuple(f"{theirs}.mlp.weights_{name}.{end}" for name in ("in", "out"))
        yield TensorRule((gate, hidden, out), gated, (SPLIT_FIRST,))
        yield TensorRule((hidden,), (f"{theirs}.mlp.fc1.{end}",), unless=gate)
        yield TensorRule((out,), (f"{theirs}.mlp.fc2.{end}",), unless=gate)


DINOV2 = ConversionTable(
    family="dinov2",
    config=VitConfig,
    flatten=flatten_dinov2,
    resolve=resolve_sizes,
    nest=nest_dinov2,
    prepare=prepare_dinov2,
    keys=(
        *sizes_of_blocks(1e-6),
        ConfigKey("hidden", "hidden"),
        ConfigKey("layerscale_value", "layer_scale", default=1.0),
        ConfigKey("hidden_act", "activation", "gelu", {**ACTIVATIONS, "swiglu": "swiglu"}),
        ConfigKey("architecture", "head", "Dinov2Model", {"Dinov2Model": "none", f"Dinov2{CLASSIFIES}": "classify"}),
        ConfigKey("pooler", "pooler", default=False),
    ),
    always={
        "pooling": "cls_mean", "cls_token": True, "dist_token": False, "registers": 0, "positions": "learned",
        "pooler": False,
    },
    ignored=UNREAD | {"apply_layernorm", "reshape_hidden_states", "use_mask_token"},
    rules=(*dinov2_rules(), *rename("classifier", "classifier")),
    prefix="dinov2.",
    headless=is_headless,
    leftovers=("dinov2.embeddings.mask_token",),
)  # fmt: skip
