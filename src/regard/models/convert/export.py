"""A model of ours as a folder that `transformers` reads."""

import json
import os
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from regard.errors import ModelError
from regard.files import make_folder, put
from regard.models.convert.configs import invert_keys
from regard.models.convert.families import FAMILIES
from regard.models.convert.sentence_encoder import write_sentence_config
from regard.models.convert.specialize import specialize
from regard.models.convert.table import ConversionTable
from regard.models.convert.weights import export_weights
from regard.models.safe_folder import INDEX, PICKLED, SAFE
from regard.models.sentence_encoder import SentenceEncoderConfig

WEIGHTS = "model.safetensors"
SPECIAL_TOKENS = {
    "pad": ("[PAD]", "<pad>"), "unk": ("[UNK]", "<unk>"), "mask": ("[MASK]", "<mask>"),
    "cls": ("[CLS]", "<bos>", "<s>"), "sep": ("[SEP]", "<eos>", "</s>"), "bos": ("<bos>", "<s>"),
    "eos": ("<eos>", "</s>", "<|endoftext|>"),
}  # fmt: skip


def to_transformers(model: nn.Module, folder: str | os.PathLike[str], tokenizer: Any = None) -> Path:
    """The folder, after config.json and model.safetensors were written there: the pair of `from_transformers`.

    `from_pretrained` of `transformers` gives the same logits. Refused where no family of that library has what the
    model has. A `SentenceEncoder` becomes a folder that `sentence-transformers` reads. A `tokenizer` of the packages
    `transformers` or `tokenizers` is written beside it.

    >>> import tempfile
    >>> from regard.models import Gpt2Config
    >>> model = Gpt2Config(vocab_size=11, width=8, heads=2, layers=1, context=16).build()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(file.name for file in to_transformers(model, folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    ours = specialize(getattr(model, "config", None))
    table, config = find_family(ours)
    state = export_weights(table, model.state_dict(), ours)
    state = {name: tensor.detach() for name, tensor in state.items() if name not in table.copies(ours)}
    dtype = str(next(iter(state.values())).dtype).removeprefix("torch.")
    config |= {"model_type": table.family, "torch_dtype": dtype}
    name = table.architecture(ours)
    config |= {} if name is None else {"architectures": [name]}
    path = Path(folder)
    must_be_free(path)
    make_folder(path)
    put(path / WEIGHTS, save(state, metadata={"format": "pt"}))
    write_tokenizer(path, tokenizer)
    if isinstance(ours, SentenceEncoderConfig):
        write_sentence_config(path, ours)
    put(path / "config.json", (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def find_family(config: Any) -> tuple[ConversionTable, dict[str, Any]]:
    """The first family that has all that this config of ours says, and its config there."""
    reasons = []
    for table in FAMILIES.values():
        if isinstance(config, table.config):
            try:
                return table, invert_keys(table, config)
            except ModelError as error:
                reasons.append(f"{table.family}: {error}")
    known = sorted({table.config.__name__ for table in FAMILIES.values()})
    if not reasons:
        raise ModelError(
            f"a model with a {type(config).__name__} came, but only those with {', '.join(known)} have a family there"
        )
    raise ModelError(f"no family of transformers has what this model has ({'; '.join(reasons)})")


def must_be_free(folder: Path) -> None:
    """Refuse a folder whose other weights would be read instead of ours, or with them."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    other = next((n for n in names if n == INDEX or (n.endswith((SAFE, *PICKLED)) and n != WEIGHTS)), None)
    if other is not None:
        raise ModelError(f"{folder} has weights in {other} already; give a new folder")


def write_tokenizer(folder: Path, tokenizer: Any) -> None:
    """What a tokenizer of another library needs to be read again."""
    if tokenizer is None:
        return
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if hasattr(tokenizer, "save_pretrained"):
        tokenizer.save_pretrained(folder)
    elif hasattr(tokenizer, "to_str"):
        put(folder / "tokenizer.json", tokenizer.to_str(pretty=True).encode())
        told = {"tokenizer_class": "PreTrainedTokenizerFast", **name_special_tokens(tokenizer)}
        put(folder / "tokenizer_config.json", (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode())
    else:
        raise ModelError(
            f"the tokenizer is a {type(tokenizer).__name__}, wanted one of transformers or tokenizers; leave it out"
        )


def name_special_tokens(tokenizer: Any) -> dict[str, str]:
    """The special tokens of a tokenizer by what `transformers` calls them: without that it guesses by the model."""
    found: dict[str, str] = {}
    for role, names in SPECIAL_TOKENS.items():
        name = next((name for name in names if tokenizer.token_to_id(name) is not None), None)
        found |= {} if name is None else {f"{role}_token": name}
    return found
