"""How surprised a model is by the text of a file."""

import os
from pathlib import Path
from typing import Any

from regard.cli.harmless import format_json
from regard.cli.lengths import WARNED, say_cut
from regard.cli.opening import load_named_model
from regard.cli.texts import STDIN, standard_input
from regard.data.lines import lines_of
from regard.errors import DataError, ModelError
from regard.models.failure import explain_failure
from regard.tasks.perplexity import Perplexity, first_tokens, perplexity
from regard.tokens.protocol import as_tokenizer


def measure_perplexity(
    file: str,
    model: str,
    *,
    window: int | None = None,
    stride: int | None = None,
    length: int | None = None,
    download: bool = False,
    as_json: bool = False,
) -> str:
    """The perplexity of a model on a file, as sentences or as JSON."""
    text = read_file(file)
    opened, tokenizer, *_ = load_named_model(model, download=download)
    if tokenizer is None:
        raise ModelError(f"{model} has no tokenizer, so it cannot read a text; give a folder that has one")
    if isinstance(getattr(tokenizer, "deprecation_warnings", None), dict):
        tokenizer.deprecation_warnings[WARNED] = True  # a text may be longer than a window here
    text = cut_text(text, tokenizer, length, file)
    with explain_failure(f"{model} failed on this text", "; try a smaller --window"):
        found = perplexity(opened, tokenizer, text, window=window, stride=stride, progress=True)
    if as_json:
        return format_json({"model": model, "file": file, **found.to_json()})
    return format_perplexity(found, model, file)


def read_file(file: str) -> str:
    """The lines of a UTF-8 file or of standard input, each with a line feed."""
    if os.path.isdir(file):
        raise DataError(f"{file} is a folder, but a file of text was wanted; give the file")
    lines = (line.text for line in standard_input()) if file == STDIN else lines_of(Path(file))
    text = "".join(f"{line}\n" for line in lines)
    if not text.strip():
        raise DataError(f"{'standard input' if file == STDIN else file} holds no text; give a file with some words")
    return text


def cut_text(text: str, tokenizer: Any, length: int | None, place: str) -> str:
    """The beginning of a text with so many tokens, and a word on it where that is not all."""
    if length is None:
        return text
    begun = first_tokens(text, tokenizer, length)
    if len(begun) < len(text):
        say_cut(len(as_tokenizer(tokenizer).encode(text)), length, place)
    return begun


def format_perplexity(found: Perplexity, model: str, file: str) -> str:
    """The figures, and all that they depend on."""
    return f"{model} on {'standard input' if file == STDIN else file}\n{found}"
