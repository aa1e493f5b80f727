"""A model of ours with the weights of another library."""

import os
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from regard.errors import ModelError
from regard.models.convert.families import convert_config, find_table
from regard.models.convert.sentence_encoder import read_sentence_config
from regard.models.convert.table import ConversionTable
from regard.models.convert.torch_transformer import TORCH_TRANSFORMER, describe_transformer
from regard.models.convert.weights import convert_weights
from regard.models.safe_folder import INDEX, SAFE, must_be_safe, read_json
from regard.models.store import SkipInit


def from_transformers(
    source: str | os.PathLike[str] | Mapping[str, Any], state: Mapping[str, Tensor] | None = None
) -> nn.Module:
    """Our model with the weights of a `transformers` one, in eval mode and in the widest dtype of the weights.

    `source` is a folder with config.json and safetensors, or the config as a dict (`config.to_dict()`) with the
    `state_dict` beside it. A folder of `sentence-transformers` gives a `SentenceEncoder`. Neither library is needed.
    """
    if isinstance(source, Mapping):
        if state is None:
            raise ModelError("a config came without weights; give the state_dict of the model as well")
        config = dict(source)
    else:
        folder = Path(source)
        config = read_json(folder / "config.json", "has no config.json; give a folder in the layout of transformers")
        must_be_safe(folder, config)
        state = read_tensors(folder) if state is None else state
    table = find_table(config.get("model_type"))
    config, state = table.prepare(config, state)
    ours = convert_config(table.family, config)
    if not isinstance(source, Mapping):
        ours = read_sentence_config(Path(source), ours) or ours
    return build_model(table, ours, state)


def from_torch_transformer(
    theirs: nn.Transformer, tables: Mapping[str, Tensor], *, positions: str = "none", pad: int = 0
) -> nn.Module:
    """Our `Translator` with the weights of an `nn.Transformer` and of the embeddings around it, in eval mode.

    `tables` are "source_embed.weight"; "target_embed.weight", without which both sides share one; "head.weight",
    without which the target's is the head. `positions` say what is added to √width times the embeddings; learned ones
    come as "encoder.added.weight" and "decoder.added.weight".

    >>> theirs = nn.Transformer(8, 2, 1, 1, 20, norm_first=True, batch_first=True)
    >>> from_torch_transformer(theirs, {"source_embed.weight": torch.ones(11, 8)})
    Translator(
      11, 11, width=8, shared=True, tied=True
      ...
    """
    if "source_embed.weight" not in tables:
        raise ModelError("an nn.Transformer has no embeddings; give tables={'source_embed.weight': …}")
    source = tables["source_embed.weight"]
    target, learned = tables.get("target_embed.weight"), tables.get("encoder.added.weight")
    config = {
        **describe_transformer(theirs),
        "source_vocab_size": source.shape[0],
        "target_vocab_size": (source if target is None else target).shape[0],
        "positions": positions,
        "shared": target is None,
        "tied": "head.weight" not in tables,
        "pad": pad,
        **({} if learned is None else {"context": learned.shape[0]}),
    }
    state = {**theirs.state_dict(), **tables}
    return build_model(TORCH_TRANSFORMER, convert_config("torch_transformer", config), state)


def build_model(table: ConversionTable, config: Any, state: Mapping[str, Tensor]) -> nn.Module:
    """The model of this config of ours with their tensors, in eval mode."""
    tensors = convert_weights(table, state, config)
    with SkipInit():
        model: nn.Module = config.build()
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor in tensors.values()))
    model.to(dtype).load_state_dict(tensors)
    return model.eval()


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Every tensor in the safetensors files of a folder; where an index lists the files, of those alone."""
    files = {file.name for file in folder.iterdir() if file.name.endswith(SAFE)}
    if (folder / INDEX).exists():
        files = {str(part) for part in read_json(folder / INDEX, "cannot be read").get("weight_map", {}).values()}
    state: dict[str, Tensor] = {}
    for name in sorted(files):
        try:
            state |= load_file(folder / name)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{folder / name} cannot be read ({error}); save the model again") from error
    return state
