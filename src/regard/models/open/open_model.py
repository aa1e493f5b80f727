"""A model and its tokenizer by name: one that comes with the package, a folder, a GGUF file, or one of the hub."""

import os
from typing import Any

from torch import nn

from regard.models.open.load_model import load_model


def open_model(name: str | os.PathLike[str], *, ours: bool = True, download: bool = False) -> tuple[nn.Module, Any]:
    """(model, tokenizer): in eval mode, with the weights and in the dtype that were stored; nothing foreign is run.

    `name` is what `regard.models.open.locate.locate` takes: an embedded model, a folder that this package or a run of
    training wrote, a folder in the layout of `transformers`, or a GGUF file. A folder whose config.json names a family
    that has a conversion table (GPT-2, Llama, Mistral, Qwen 2 and 3, BERT, RoBERTa, ELECTRA, DistilBERT, T5) opens as
    our class, with a `tokenizers.Tokenizer` where it has a tokenizer.json; a key of its config or a tensor that ours
    cannot be is an error that names it. `ours=False`, and every other family, gives the class of `transformers` that
    config.json names, and its tokenizer. A GGUF file opens as our class, its weights unpacked to float32. The tokenizer
    is None where there is none; the chat template and the ids that end a text are with `load_model` beside this.

    Weights are read from safetensors or GGUF only. A name of the hub opens from its local cache; where it is not there,
    it needs `download=True`: nothing is downloaded unasked.

    >>> open_model("induction")[1].encode("A B C A")
    [0, 1, 2, 0]
    """
    loaded = load_model(name, ours=ours, download=download)
    return loaded.model, loaded.tokenizer
