"""The model of a GGUF file: our class, its weights unpacked to float32."""

import torch
from torch import Tensor, nn

from regard.errors import ModelError
from regard.models.convert.weights import convert_weights
from regard.models.gguf.config import FREQUENCIES, read_config
from regard.models.gguf.file import GGUFFile
from regard.models.gguf.tables import table_of
from regard.models.store import SkipInit
from regard.positions.rotary import interleaved_to_half

TURNED = ("attn_q.weight", "attn_k.weight", "attn_q.bias", "attn_k.bias")  # whose rows stand as llama.cpp turns them


def read_model(file: GGUFFile) -> nn.Module:
    """Our model with the weights of the file, in eval mode and float32; every tensor is known and has its shape."""
    config, table = read_config(file), table_of(file.architecture, file.path.name)
    shapes = {name: torch.empty(info.shape, device="meta") for name, info in file.header.tensors.items()}
    shapes.pop(FREQUENCIES, None)  # the config says the same
    try:
        convert_weights(table, shapes, config)  # before anything is unpacked
        tensors = convert_weights(table, {name: read_tensor(file, name, config.heads) for name in shapes}, config)
    except ModelError as error:
        raise ModelError(f"{file.path.name}: {error}") from error
    with SkipInit():
        model: nn.Module = config.build()
    own = {name: tensor.clone() if tensor._is_view() else tensor for name, tensor in tensors.items()}
    model.load_state_dict(own, assign=True)  # no second copy of all weights
    return model.eval()


def read_tensor(file: GGUFFile, name: str, heads: int) -> Tensor:
    """One tensor in float32. Rows of q and k in a file of Llama stand in pairs of neighbours, ours in halves."""
    tensor = torch.from_numpy(file.dequantize(name)).clone()  # to where torch aligns its tensors
    if file.architecture != "llama" or not name.endswith(TURNED):
        return tensor
    if "attn_k" in name:
        heads = file.metadata.get("llama.attention.head_count_kv", heads)
    return interleaved_to_half(tensor.unflatten(0, (heads, -1)), dim=1).flatten(0, 1)
