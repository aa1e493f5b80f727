"""A text as token ids: truncated where --length says so, and refused where it is longer than the model takes."""

from typing import Any

import typer
from tokenizers import Tokenizer
from torch import nn

from regard.errors import ModelError
from regard.models.context import max_tokens
from regard.trace.census.corpus import encode

WARNED = "sequence-length-is-longer-than-the-specified-maximum"  # what transformers warns of, and we say ourselves


def encode_within(text: str, model: nn.Module, tokenizer: Any, length: int | None, place: str = "") -> list[int]:
    """The ids of a text, truncated to `length`; refused in one sentence where the model takes fewer."""
    if isinstance(getattr(tokenizer, "deprecation_warnings", None), dict):
        tokenizer.deprecation_warnings[WARNED] = True
    ids = encode(text, tokenizer)[0]
    came = len(ids)
    if length is not None and came > length:
        ids = cut_tokens(text, tokenizer, ids, length)
        say_cut(came, length, place)
    check_length(len(ids), max_tokens(model, tokenizer), place)
    return ids


def cut_tokens(text: str, tokenizer: Any, ids: list[int], length: int) -> list[int]:
    """The first tokens; those that a tokenizer puts around a text stay around it."""
    if isinstance(tokenizer, Tokenizer) and tokenizer.num_special_tokens_to_add(is_pair=False) < length:
        tokenizer.enable_truncation(length)
        try:
            return list(tokenizer.encode(text).ids)
        finally:
            tokenizer.no_truncation()
    if hasattr(tokenizer, "all_special_ids") and tokenizer.num_special_tokens_to_add() < length:
        return [int(one) for one in tokenizer(text, truncation=True, max_length=length)["input_ids"]]
    return ids[:length]


def say_cut(came: int, length: int, place: str = "") -> None:
    typer.echo(
        f"{place or 'the text'}: truncated to the first {length:,} of {came:,} tokens (--length {length})", err=True
    )


def say_unknown(unknown: int, came: int, place: str = "") -> None:
    """Say how many tokens of a text the model does not know: all of these are the same to it."""
    if unknown:
        are = "is" if unknown == 1 else "are"
        typer.echo(f"{place or 'the text'}: {unknown:,} of {came:,} tokens {are} unknown to the model", err=True)


def check_length(tokens: int, limit: int | None, place: str = "") -> None:
    """Refuse more tokens than a model takes."""
    if limit is not None and tokens > limit:
        raise ModelError(
            f"{place or 'the text'} has {tokens:,} tokens, but the model takes at most {limit:,}; "
            f"truncate it with --length {limit}"
        ).with_code("text.longer", tokens=tokens, limit=limit)
