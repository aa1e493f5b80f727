"""The token that stands for a hidden word."""

from typing import Any

MASKS = ("[MASK]", "<mask>", "<MASK>")


def find_mask_id(tokenizer: Any) -> int | None:
    """The id of the mask token: what a tokenizer of `transformers` says, else by its usual names; None without one.

    >>> from regard.models.tokenizer import WordTokenizer
    >>> find_mask_id(WordTokenizer(["A", "[MASK]"])), find_mask_id(WordTokenizer(["A", "B"]))
    (1, None)
    """
    if hasattr(tokenizer, "mask_token_id"):
        number = tokenizer.mask_token_id
        return None if number is None else int(number)
    named = getattr(tokenizer, "token_to_id", lambda name: None)
    return next((number for number in map(named, MASKS) if number is not None), None)
