"""A model by its name: one that comes with the package, a folder, or one of the hub, downloaded only if asked to."""

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import ModelError, is_failure
from regard.extras import HF, importing
from regard.models import embedded, store
from regard.models.hub import cached_folder, check_reachable
from regard.models.tokenizer import WordTokenizer
from regard.tokens.visible import cut

TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model"),
    *("sentencepiece.bpe.model", "source.spm"),
)
SAFE, PICKLED = ".safetensors", (".bin", ".pt", ".pth", ".ckpt")
HUB = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
SOURCE = "source.json"  # the vocabulary of what a translator reads
INDEX = "model.safetensors.index.json"
PICTURES = "preprocessor_config.json"  # beside a model that sees


def open_model(name: str | os.PathLike[str], *, download: bool = False) -> tuple[nn.Module, Any]:
    """(model, tokenizer): in eval mode, with the weights and in the dtype that were stored; nothing foreign is run.

    `name` is an embedded model, a folder that this package wrote, or a folder in the layout of `transformers`: then
    the class that its config.json names is used, and the tokenizer is None where there is none. Weights are read from
    safetensors only. A name of the hub opens from its local cache; where it is not there, it needs `download=True`:
    nothing is downloaded unasked.

    >>> open_model("induction")[1].encode("A B C A")
    [0, 1, 2, 0]
    """
    if isinstance(name, str) and name in embedded.names():
        return embedded.load(name), embedded.tokenizer(name)
    folder = Path(name)
    if os.path.isfile(folder / store.MANIFEST):  # unlike those of Path, these take any name for an answer
        return store.read(folder), tokenizer_of(folder)
    if name != "" and os.path.isdir(folder):
        return from_folder(folder)
    hub = isinstance(name, str) and HUB.fullmatch(name) is not None
    cached = cached_folder(str(name)) if hub else None
    if cached is not None:
        found = from_cache(str(name), cached, download=download)
        if found is not None:
            return found
    shown = cut(str(name), 80)
    if not download:
        raise ModelError(
            f"{shown!r} is neither an embedded model ({', '.join(embedded.names())}) nor a folder, it is not in "
            "the local cache of the hub, and nothing is downloaded unasked; pass --download (download=True) to fetch it"
        )
    if not hub:
        raise ModelError(
            f"{shown!r} is no folder, and no name of the hub either, such as 'gpt2' or 'google-t5/t5-small'; "
            "give the one or the other"
        )
    check_reachable(str(name))
    return from_hub(str(name))


def tokenizer_of(folder: Path) -> Any:
    """What turns text into the ids that a model of our own reads: its words, or the vocabulary of its source."""
    if SOURCE not in (store.describe(folder).get("files") or {}):
        return WordTokenizer(store.vocabulary_of(folder))
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(store.read_file(folder, SOURCE).decode())
    except BaseException as error:
        raise failed(f"the vocabulary of {folder}", error) from error


def from_folder(folder: Path) -> tuple[nn.Module, Any]:
    """The model and tokenizer of a folder in the layout of `transformers`, from its own files alone."""
    config = read_json(folder / "config.json", "has no config.json; give a folder in the layout of transformers")
    must_be_safe(folder, config)
    transformers = library()
    model = load(transformers, str(folder), config.get("architectures"), local_files_only=True)
    files = {file.name for file in folder.iterdir()}
    tokenizer = None
    if not files.isdisjoint(TOKENIZERS):
        tokenizer = load_tokenizer(transformers, str(folder), local_files_only=True)
    return model, tokenizer


def from_cache(name: str, folder: Path, *, download: bool) -> tuple[nn.Module, Any] | None:
    """The same from the cache of the hub; None where it should be downloaded because the cache does not suffice."""
    if not suffices(name, folder, download=download):
        return None
    try:
        return from_folder(folder)
    except ModelError:
        if not download:
            raise
        return None


def hub_folder(name: str, *, download: bool = False) -> Path | None:
    """The folder in the local cache of a model of the hub, fetched first where that is wanted; None without one."""
    folder = cached_folder(name) if HUB.fullmatch(name) else None
    if download and (folder is None or not suffices(name, folder, download=True)):
        open_model(name, download=True)
        return cached_folder(name)
    if folder is not None:
        suffices(name, folder, download=False)
    return folder


def suffices(name: str, folder: Path, *, download: bool) -> bool:
    """Whether a model in the cache is whole; where nothing may be downloaded, one that is not is refused."""
    missing = missing_file(folder)
    if missing is not None and not download:
        raise ModelError(
            f"the local cache holds only a part of {name!r} ({missing} is missing); pass --download (download=True) to "
            "fetch the rest"
        )
    reads = any((folder / one).exists() for one in (*TOKENIZERS, PICTURES))
    return missing is None and (reads or not download)


def missing_file(folder: Path) -> str | None:
    """A file that a model in the cache lacks, because its download was cut short or its weights were never wanted."""
    names = sorted(os.listdir(folder))
    parts = read_json(folder / INDEX, "cannot be read").get("weight_map") if INDEX in names else None
    wanted = [*names, *sorted({str(part) for part in parts.values()} if isinstance(parts, dict) else ())]
    if not any(name.endswith((SAFE, *PICKLED)) for name in wanted):
        return "model.safetensors"
    return next((name for name in wanted if not (folder / name).exists()), None)


def from_hub(name: str) -> tuple[nn.Module, Any]:
    """The same by its name on the hub, downloaded where it is not here yet."""
    transformers = library()
    try:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
    except BaseException as error:
        raise failed(name, error) from error
    model = load(transformers, name, config.architectures, local_files_only=False)
    try:
        return model, load_tokenizer(transformers, name, local_files_only=False)
    except ModelError as error:  # a model of pictures or sound has none
        warnings.warn(str(error), stacklevel=3)
        return model, None


def load(transformers: Any, source: str, architectures: Any, *, local_files_only: bool) -> nn.Module:
    """The model, of the class that its config names."""
    maker = class_of(transformers, source, architectures)
    safe = {"use_safetensors": True, "trust_remote_code": False}
    try:
        model, info = maker.from_pretrained(source, **safe, local_files_only=local_files_only, output_loading_info=True)
    except BaseException as error:  # whatever a library in between raises for a file that is not what it says
        raise failed(source, error) from error
    missing = sorted(info.get("missing_keys", ()))
    if missing:
        warnings.warn(
            f"{source} lacks {len(missing)} tensors of a {type(model).__name__}, {missing[0]} for one, and they are "
            "random now; what depends on them shows nothing of the model that was trained",
            stacklevel=4,
        )
    return model.eval()


def class_of(transformers: Any, source: str, architectures: Any) -> Any:
    """The class of `transformers` that a config names; where it names none, the one for its type without a head."""
    if not architectures:
        return transformers.AutoModel
    name = architectures[0] if isinstance(architectures, list) else architectures
    found = getattr(transformers, name, None) if isinstance(name, str) else None
    if not isinstance(found, type) or not issubclass(found, transformers.PreTrainedModel):
        raise ModelError(
            f"{source} is a {name!r}, which this version of transformers does not have, and code that comes with a "
            "model is not run; build the model yourself and watch that"
        )
    return found


def load_tokenizer(transformers: Any, source: str, *, local_files_only: bool) -> Any:
    try:
        return transformers.AutoTokenizer.from_pretrained(
            source, local_files_only=local_files_only, trust_remote_code=False
        )
    except BaseException as error:
        raise failed(f"the tokenizer of {source}", error) from error


def must_be_safe(folder: Path, config: dict[str, Any]) -> None:
    """Refuse weights that are not safetensors through and through: reading a pickle can run anything."""
    names = sorted(file.name for file in folder.iterdir())
    if "adapter_config.json" in names:
        raise ModelError(f"{folder} holds an adapter for another model; merge the two, and save the whole model")
    weights = [name for name in names if name.endswith(SAFE)]
    if INDEX in names:
        parts = read_json(folder / INDEX, "cannot be read").get("weight_map")
        weights = [str(part) for part in parts.values()] if isinstance(parts, dict) else []
    if config.get("transformers_weights"):
        weights.append(str(config["transformers_weights"]))
    others = weights or [name for name in names if name.endswith(PICKLED)]
    refused = next((name for name in others if not name.endswith(SAFE)), None)
    if refused is not None:
        raise ModelError(
            f"{folder} has weights in {refused}, which is no safetensors file, and reading a pickle can run anything; "
            "convert it with model.save_pretrained(folder), which writes safetensors"
        )
    if not weights:
        raise ModelError(f"{folder} has no weights; give a folder with model.safetensors in it")


def read_json(path: Path, lacking: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path.parent} {lacking}") from error
    except ValueError as error:
        raise ModelError(f"{path} is no JSON ({error}); save the model again") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no object; save the model again")
    return found


def library() -> Any:
    """`transformers`, or the sentence that says how to get it."""
    missing = "to open a model of the transformers library, install regard[hf]: pip install 'regard[hf]'"
    with importing(*HF, missing=ModelError(missing)):
        import transformers
    return transformers


def failed(what: str, error: BaseException) -> ModelError:
    """What a library said, in one sentence of ours; that somebody wants to stop is not among it."""
    if not is_failure(error):
        raise error
    said = " ".join(str(error).split())
    return ModelError(f"{what} could not be opened: {type(error).__name__}: {said[:300]}")
