"""A model that is to write, with its tokenizer: of a GGUF file its codes as they are, where kernels can read them."""

import os
from importlib.util import find_spec

from regard.errors import ModelError
from regard.models.fast.quantized import QuantizedModel
from regard.models.gguf import GGUFFile
from regard.models.gguf.tokenizer import read_chat_template, read_end_ids, read_tokenizer
from regard.models.layout import GGUF
from regard.models.open.load_model import LoadedModel, load_model, widen


def load_writer(name: str | os.PathLike[str], *, ours: bool, download: bool, quantized: bool) -> LoadedModel:
    """What `load_model` loads, in float32; with `quantized` the codes of a GGUF file stay codes, where they can."""
    is_gguf = os.fspath(name).lower().endswith(GGUF) and os.path.isfile(name)
    if is_gguf and quantized and find_spec("numba") is not None:
        file = GGUFFile(name)
        tokenizer = read_tokenizer(file)  # first: what is wrong with it is found soon
        try:
            model = QuantizedModel.read(file)
        except ModelError:
            pass  # no kernel for it; unpacked, it opens, or says what is wrong
        else:
            return LoadedModel(model, tokenizer, read_chat_template(file), read_end_ids(file))
    return widen(load_model(name, ours=ours, download=download))
