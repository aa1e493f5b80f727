"""A model by its name with all that comes with it: tokenizer, chat template, the tokens that end a text."""

import os
from typing import Any, NamedTuple

from regard.errors import ModelError
from regard.models import embedded, store
from regard.models.chat_template import ChatTemplate
from regard.models.gguf.file import GGUFFile
from regard.models.gguf.model import read_model
from regard.models.gguf.tokenizer import read_chat_template, read_end_ids
from regard.models.gguf.tokenizer import read_tokenizer as read_gguf_tokenizer
from regard.models.open.converted import NotConvertibleError, kind_of_family, read_config, read_converted
from regard.models.open.folder_files import read_folder_ends, read_folder_template, read_folder_tokenizer
from regard.models.open.library import from_folder, from_hub
from regard.models.open.locate import ModelLocation, locate, locate_cached, must_be_fetched
from regard.models.read_tokenizer import read_tokenizer


class LoadedModel(NamedTuple):
    """A model that was opened, in eval mode, and what lay beside its weights."""

    model: Any  # an nn.Module, or a model of codes that only writes
    tokenizer: Any  # None where there is none
    chat_template: ChatTemplate | None = None  # how it wants conversations written, where it was made for them
    end_ids: tuple[int, ...] = ()  # the tokens by which it says that it has finished; () where nothing says so


def load_model(name: str | os.PathLike[str], *, ours: bool = True, download: bool = False) -> LoadedModel:
    """What `open_model` opens, with the chat template and the ids that end a text.

    >>> load_model("induction").chat_template is None
    True
    """
    if not download or os.path.exists(name):
        return load_location(locate(name), ours=ours)
    return load_or_fetch(str(name), ours=ours)


def widen(loaded: LoadedModel) -> LoadedModel:
    """The same, computed in float32 where it was stored in half precision and lies on the processor.

    Most published weights are bfloat16, which many processors multiply slowly, and some not at all.
    """
    halves = (parameter for parameter in loaded.model.parameters() if parameter.dtype.itemsize < 4)
    if any(parameter.is_floating_point() and parameter.device.type == "cpu" for parameter in halves):
        loaded.model.float()
    return loaded


def load_location(place: ModelLocation, *, ours: bool = True) -> LoadedModel:
    """The model that was located."""
    if place.is_ours:
        return LoadedModel(store.read(place.path), read_tokenizer(place.path))
    if place.layout == "gguf":
        if not ours:
            raise ModelError(f"{place.name} is a GGUF file, which opens as a model of ours; leave ours=False away")
        file = GGUFFile(place.path)
        tokenizer = read_gguf_tokenizer(file)  # first: what is wrong with it is found soon
        return LoadedModel(read_model(file), tokenizer, read_chat_template(file), read_end_ids(file))
    folder = place.path
    if ours and kind_of_family(read_config(folder)) is not None:
        model, tokenizer = read_converted(folder), read_folder_tokenizer(folder)
    else:
        model, tokenizer = from_folder(folder)
    return LoadedModel(model, tokenizer, read_folder_template(folder), read_folder_ends(folder, tokenizer))


def load_or_fetch(name: str, *, ours: bool) -> LoadedModel:
    """The same, downloaded where the local cache of the hub does not suffice."""
    if name in embedded.names():
        return load_location(locate(name))
    cached = locate_cached(name, download=True)
    if cached is not None:
        try:
            return load_location(cached, ours=ours)
        except NotConvertibleError:
            raise  # it is whole, and would be the same again
        except ModelError:
            pass  # what is there is damaged: fetch it again
    must_be_fetched(name, download=True)
    model, tokenizer = from_hub(name)
    fetched = locate_cached(name, download=False)
    return LoadedModel(model, tokenizer) if fetched is None else load_location(fetched, ours=ours)
