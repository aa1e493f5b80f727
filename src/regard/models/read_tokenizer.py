"""What turns text into the ids that a model of our own reads, from its folder."""

from pathlib import Path
from typing import Any

from regard.models import store
from regard.models.failure import failure_of
from regard.models.tokenizer import WordTokenizer

TOKENIZER, SOURCE = "tokenizer.json", "source.json"  # of a model of texts; of what a translator reads


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model of texts, the vocabulary of a translator's source, or the words of the manifest.

    None of a model that reads pictures.
    """
    manifest = store.describe(folder)
    kind = store.kind_in(folder, manifest)
    if kind.reads == "picture":
        return None
    files = manifest.get("files") or {}
    name = next((name for name in (TOKENIZER, SOURCE) if name in files), None)
    if name is None:
        return WordTokenizer(store.vocabulary_of(folder))
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(store.read_file(folder, name).decode())
    except BaseException as error:
        raise failure_of(f"the vocabulary of {folder}", error) from error
    # "<unk>" in a text is a text, as it was in training; no file can say this. Who fills gaps must be shown its mask.
    tokenizer.encode_special_tokens = kind.writes == "text"
    return tokenizer
