"""The weights of a GGUF file in memory as it codes them; what has no kernel here is unpacked to float32, exactly."""

import numpy as np
import torch
from numpy.typing import NDArray

from regard.errors import ModelError
from regard.models.convert.weights import convert_weights, expand_rules
from regard.models.fast.packing import pack
from regard.models.fast.tables import F32, NAMES
from regard.models.fast.weights import StoredMatrix, StoredWeights
from regard.models.gguf import GGUFFile
from regard.models.gguf.config import FREQUENCIES, read_config
from regard.models.gguf.file import dequantize_codes
from regard.models.gguf.header import TensorInfo
from regard.models.gguf.model import TURNED
from regard.models.gguf.tables import table_of
from regard.models.llama import LlamaConfig
from regard.positions.rotary import interleaved_to_half

CODES = {name: code for code, name in enumerate(NAMES) if code != F32}


def read_codes(file: GGUFFile) -> StoredWeights:
    """All weights of a Llama's file; each tensor is known, there and of its shape."""
    config, table = read_config(file), table_of(file.architecture, file.path.name)
    if not isinstance(config, LlamaConfig):
        raise ModelError(
            f"{file.path.name} holds a model of the architecture {file.architecture!r}, of which the fast engine knows "
            "nothing; open it with its weights unpacked"
        )
    shapes = {name: torch.empty(info.shape, device="meta") for name, info in file.header.tensors.items()}
    shapes.pop(FREQUENCIES, None)  # the config says the same
    try:
        convert_weights(table, shapes, config)
        rules, _ = expand_rules(table, config)
    except ModelError as error:
        raise ModelError(f"{file.path.name}: {error}") from error
    return StoredWeights(config, {rule.ours[0]: read_stored(file, rule.theirs[0], config) for rule in rules})


def read_stored(file: GGUFFile, name: str, config: LlamaConfig) -> StoredMatrix:
    """One tensor, read from the disk and packed: the file is not mapped, so that its pages do not count twice."""
    info = file.header.tensors[name]
    rows = info.shape[0] if len(info.shape) > 1 else 1
    codes = np.fromfile(file.path, np.uint8, info.size, offset=info.start).reshape(rows, -1)
    if file.architecture == "llama" and name.endswith(TURNED):
        heads = config.heads if "attn_q" in name or config.kv_heads is None else config.kv_heads
        codes = reorder_heads(codes, info, heads)
    code = CODES.get(info.type.name)
    if code is not None and rows > 1:
        return StoredMatrix(pack(codes, code), rows, info.shape[-1], code)
    values = np.require(dequantize_codes(codes, info.type.name), np.float32, ["C"])
    return StoredMatrix(values.reshape(rows, -1), rows, info.shape[-1])


def reorder_heads(codes: NDArray[np.uint8], info: TensorInfo, heads: int) -> NDArray[np.uint8]:
    """Rows of q or k, whose pairs of channels are neighbours in the file, in halves; of a bias, its numbers."""
    rows = codes.reshape(info.shape[0], -1)
    places = torch.arange(len(rows), dtype=torch.float64).unflatten(0, (heads, -1))
    return rows[interleaved_to_half(places).flatten().long().numpy()].reshape(codes.shape)
