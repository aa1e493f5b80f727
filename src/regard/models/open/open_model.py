"""A model and its tokenizer by name: one that comes with the package, a folder, or one of the hub."""

import os
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.models import embedded, store
from regard.models.open.library import from_folder, from_hub
from regard.models.open.locate import ModelLocation, locate, locate_cached, must_be_fetched
from regard.models.read_tokenizer import read_tokenizer


def open_model(name: str | os.PathLike[str], *, download: bool = False) -> tuple[nn.Module, Any]:
    """(model, tokenizer): in eval mode, with the weights and in the dtype that were stored; nothing foreign is run.

    `name` is what `regard.models.open.locate.locate` takes: an embedded model, a folder that this package or a run of
    training wrote, or a folder in the layout of `transformers`: then the class that its config.json names is used, and
    the tokenizer is None where there is none. Weights are read from safetensors only. A name of the hub opens from its
    local cache; where it is not there, it needs `download=True`: nothing is downloaded unasked.

    >>> open_model("induction")[1].encode("A B C A")
    [0, 1, 2, 0]
    """
    if not download or os.path.exists(name):
        return open_location(locate(name))
    return open_or_fetch(str(name))


def open_location(place: ModelLocation) -> tuple[nn.Module, Any]:
    """The model that was located, and its tokenizer."""
    if place.is_ours:
        return store.read(place.path), read_tokenizer(place.path)
    if place.layout == "gguf":
        raise gguf_refusal(place.path)
    return from_folder(place.path)


def gguf_refusal(path: Path) -> ModelError:
    """What to say of a GGUF file."""
    return ModelError(f"{path} is a GGUF file, which is not read yet; give the folder of the model in safetensors")


def open_or_fetch(name: str) -> tuple[nn.Module, Any]:
    """The same, downloaded where the local cache of the hub does not suffice."""
    if name in embedded.names():
        return open_location(locate(name))
    cached = locate_cached(name, download=True)
    if cached is not None:
        try:
            return open_location(cached)
        except ModelError:
            pass  # what is there is damaged: fetch it again
    must_be_fetched(name, download=True)
    return from_hub(name)
