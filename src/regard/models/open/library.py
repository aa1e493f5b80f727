"""Models of the `transformers` library, from a folder or the hub: weights from safetensors alone, no code that comes
with them."""

import warnings
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.extras import HF, importing
from regard.models.failure import failure_of
from regard.models.safe_folder import missing_file, must_be_safe, read_json

TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model"),
    *("sentencepiece.bpe.model", "source.spm"),
)
PICTURES = "preprocessor_config.json"  # beside a model that sees


def from_folder(folder: Path) -> tuple[nn.Module, Any]:
    """The model and tokenizer of a folder in the layout of `transformers`, from its own files alone."""
    config = read_json(folder / "config.json", "has no config.json; give a folder in the layout of transformers")
    must_be_safe(folder, config)
    transformers = import_transformers()
    model = load(transformers, str(folder), config.get("architectures"), local_files_only=True)
    if not has_tokenizer(folder):
        return model, None
    return model, load_tokenizer(transformers, str(folder), local_files_only=True)


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a file of a tokenizer."""
    return any((folder / name).exists() for name in TOKENIZERS)


def is_complete(name: str, folder: Path, *, download: bool) -> bool:
    """Whether a model in the cache is whole; where nothing may be downloaded, one that is not is refused."""
    missing = missing_file(folder)
    if missing is not None and not download:
        raise ModelError(
            f"the local cache holds only a part of {name!r} ({missing} is missing); pass --download (download=True) to "
            "fetch the rest"
        )
    reads = has_tokenizer(folder) or (folder / PICTURES).exists()
    return missing is None and (reads or not download)


def from_hub(name: str) -> tuple[nn.Module, Any]:
    """The model and tokenizer of a name on the hub, downloaded where they are not here yet."""
    transformers = import_transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
    except BaseException as error:
        raise failure_of(name, error) from error
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
        raise failure_of(source, error) from error
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
    model_class = getattr(transformers, name, None) if isinstance(name, str) else None
    if not isinstance(model_class, type) or not issubclass(model_class, transformers.PreTrainedModel):
        raise ModelError(
            f"{source} is a {name!r}, which this version of transformers does not have, and code that comes with a "
            "model is not run; build the model yourself and watch that"
        )
    return model_class


def load_tokenizer(transformers: Any, source: str, *, local_files_only: bool) -> Any:
    try:
        return transformers.AutoTokenizer.from_pretrained(
            source, local_files_only=local_files_only, trust_remote_code=False
        )
    except BaseException as error:
        raise failure_of(f"the tokenizer of {source}", error) from error


def import_transformers() -> Any:
    """`transformers`, or the sentence that says how to get it."""
    missing = "to open a model of the transformers library, install regard[hf]: pip install 'regard[hf]'"
    with importing(*HF, missing=ModelError(missing)):
        import transformers
    return transformers
