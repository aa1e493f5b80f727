"""What the tables of models that read pictures have in common: sizes in pixels, heads, the names of newer versions."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from regard.errors import ModelError
from regard.models.convert.configs import IGNORED
from regard.models.convert.table import ConfigKey

CLASSIFIES = "ForImageClassification"
UNREAD = IGNORED | {
    "attention_probs_dropout_prob", "drop_path_rate", "encoder_stride", "hidden_dropout_prob", "gradient_checkpointing",
    "num_labels", "out_features", "out_indices", "path_norm", "stage_names",
}  # fmt: skip
PICTURE_KEYS = (
    ConfigKey("image_height", "image_height"),
    ConfigKey("image_width", "image_width"),
    ConfigKey("num_channels", "channels", default=3),
    ConfigKey("labels", "labels", default=2),
)


def flatten_picture(config: dict[str, Any], *, image_size: int, patch_size: int) -> dict[str, Any]:
    """Plain keys of `architectures`, `id2label`, and of the sizes of pictures and patches, given as one or two."""
    names = config.pop("architectures", None)
    if names:
        config["architecture"] = names[0] if isinstance(names, list) else names
    classes = config.get("id2label")
    config.setdefault("labels", len(classes) if isinstance(classes, Mapping) else config.get("num_labels", 2))
    height, width = as_pair(config.pop("image_size", image_size), "image_size")
    patch, other = as_pair(config.pop("patch_size", patch_size), "patch_size")
    if patch != other:
        raise ModelError(
            f"the config has patches of {patch} × {other} pixels, but ours are square; keep the model of that library"
        )
    return config | {"image_height": height, "image_width": width, "patch_size": patch}


def as_pair(size: Any, name: str) -> tuple[int, int]:
    """A size in both directions, (rows, columns)."""
    pair = size if isinstance(size, list | tuple) else [size, size]
    if len(pair) != 2 or not all(type(one) is int and one > 0 for one in pair):
        raise ModelError(f"the config has {name}={size!r}, wanted a whole number or two; correct it")
    return pair[0], pair[1]


def nest_picture(config: dict[str, Any]) -> dict[str, Any]:
    """The way back: the class as a list, names of labels where it has a head, the size of pictures as one or two."""
    labels, name = config.pop("labels"), config.pop("architecture")
    height, width = config.pop("image_height"), config.pop("image_width")
    labels = labels if CLASSIFIES in name else 2
    names = {number: f"LABEL_{number}" for number in range(labels)}
    return config | {
        "architectures": [name],
        "id2label": names,
        "label2id": {one: number for number, one in names.items()},
        "image_size": height if height == width else [height, width],
    }


def rename_tensors(state: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """The tensors under the names that files have; `names` are patterns of those that newer versions have in memory."""

    def rename(name: str) -> str:
        for pattern, other in names.items():
            name = re.sub(pattern, other, name)
        return name

    return {rename(name): tensor for name, tensor in state.items()}


def shape_tensor(wanted: Callable[[Tensor], Tensor]) -> Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]:
    """A function of one tensor as a function of tensors."""
    return lambda tensors: (wanted(tensors[0]),)
