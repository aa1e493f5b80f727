"""Folders in the layout of `transformers` as models of ours: those of a family that has a conversion table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.models.convert.checkpoint import from_transformers, read_tensors
from regard.models.convert.families import FAMILIES
from regard.models.convert.table import ConversionTable
from regard.models.kinds import KINDS, Kind, entry_of
from regard.models.layout import CONFIG
from regard.models.safe_folder import must_be_safe, read_json


class NotConvertibleError(ModelError):
    """A model of a family that has a table, whose config or weights say what ours cannot be."""

    def __init__(self, folder: Path, reason: ModelError) -> None:
        super().__init__(f"{folder} is no model of ours: {reason}; or open it with ours=False")
        self.notice = f"{folder} is no model of ours, so transformers itself runs it: {reason}"  # where that is done


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a folder in the layout of `transformers`."""
    return read_json(folder / CONFIG, f"has no {CONFIG}; give a folder in the layout of transformers")


def kind_of_family(config: Mapping[str, Any]) -> Kind | None:
    """The kind of ours that a model with this config.json becomes; None where `transformers` itself must open it.

    Translators with a tokenizer for each side stay with that library; a T5 has one.

    >>> kind_of_family({"model_type": "qwen2"}).name
    'llama'
    >>> kind_of_family({"model_type": "dinov2"}).name, kind_of_family({"model_type": "marian"}) is None
    ('vit', True)
    """
    family = config.get("model_type")
    kind = kind_of_table(FAMILIES[family]) if isinstance(family, str) and family in FAMILIES else None
    return kind if kind is not None and (kind.reads in ("text", "picture") or kind.name == "t5") else None


def kind_of_table(table: ConversionTable) -> Kind | None:
    """The kind of the models that a table gives."""
    config: Any = table.config
    return entry_of(config, [(kind.config, kind) for kind in KINDS.values()])


def read_converted(folder: Path) -> nn.Module:
    """Our model with the weights of the folder, every key of its config and every tensor known."""
    must_be_safe(folder, read_config(folder))
    state = read_tensors(folder)
    try:
        return from_transformers(folder, state)
    except ModelError as error:
        raise NotConvertibleError(folder, error) from error
