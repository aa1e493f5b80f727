"""Texts as batches of ids: each batch of one length, so that nothing is padded and any model can read it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.errors import TraceError
from regard.tokens import Tokens

RARE = 0.25  # of all positions


def batches(texts: Iterable[Any], tokenizer: Any = None, *, batch: int, length: int | None) -> list[Int[Tensor, "b n"]]:
    """Batches of at most `batch` texts of equal length, shortest first; `length` cuts longer texts."""
    if isinstance(texts, str):
        raise TraceError("texts is one string; give several, such as [text]")
    if batch < 1 or (length is not None and length < 1):
        raise TraceError(f"batch is {batch} and length {length}, but both count from 1")
    by_size: dict[int, list[list[int]]] = {}
    for text in texts:
        for ids in encode(text, tokenizer):
            cut = ids[:length]
            if cut:
                by_size.setdefault(len(cut), []).append(cut)
    if not by_size:
        raise TraceError("no text holds any token; give texts with something to read")
    return [
        torch.tensor(some[first : first + batch])
        for _, some in sorted(by_size.items())
        for first in range(0, len(some), batch)
    ]


def encode(text: Any, tokenizer: Any) -> list[list[int]]:
    """The ids of a text: of a string by the tokenizer; ids themselves, (n,) or (b, n), stay as they are."""
    if isinstance(text, Tensor):
        if text.ndim not in (1, 2) or text.is_floating_point() or text.dtype == torch.bool:
            raise TraceError(f"ids came as {text.dtype} {tuple(text.shape)}; give whole numbers, (n,) or (b, n)")
        rows: list[list[int]] = text.tolist() if text.ndim == 2 else [text.tolist()]
        return rows
    if isinstance(text, str):
        if tokenizer is None:
            raise TraceError("a text is a string, so a tokenizer is needed to read it; give one, or give ids")
        found = tokenizer(text) if callable(tokenizer) else tokenizer.encode(text)
        found = found["input_ids"] if isinstance(found, Mapping) else getattr(found, "ids", found)
        return [[int(one) for one in found]]
    if isinstance(text, Sequence) and all(isinstance(one, int) for one in text):
        return [list(text)]
    raise TraceError(f"a text is {type(text).__name__}; give strings, lists of ids or tensors of ids")


def special_names(tokenizer: Any) -> dict[int, str]:
    """The special tokens of a transformers or tokenizers tokenizer: id → text."""
    if hasattr(tokenizer, "all_special_ids"):
        names = tokenizer.convert_ids_to_tokens(list(tokenizer.all_special_ids))
        return dict(zip(tokenizer.all_special_ids, names))
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        return {i: one.content for i, one in tokenizer.get_added_tokens_decoder().items() if one.special}
    return {}


def name_tokens(ids: Int[Tensor, "b n"], special: dict[int, str]) -> tuple[Tokens, ...]:
    """The ids as tokens; of the words only the special ones have their text."""
    return tuple(
        Tokens(tuple(special.get(i, str(i)) for i in row), tuple(row), special=tuple(i in special for i in row))
        for row in ids.tolist()
    )


def find_rarest(some: Sequence[Int[Tensor, "_b _n"]]) -> Int[Tensor, " r"]:
    """The ids of the rarest tokens, which fill a quarter of all positions.

    Tokens that are equally rare stay together, so it may be more; where all are equally rare it is all of them.
    """
    counts = Counter(i for ids in some for i in ids.flatten().tolist())
    by_count: dict[int, list[int]] = {}
    for i, count in counts.items():
        by_count.setdefault(count, []).append(i)
    found: list[int] = []
    filled, total = 0, sum(counts.values())
    for count, ids in sorted(by_count.items()):
        if filled >= RARE * total:
            break
        found += ids
        filled += count * len(ids)
    return torch.tensor(sorted(found))
