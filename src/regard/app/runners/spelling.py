"""Tokens as people read them."""

from typing import Any

from regard.tokens import Reader


class Names:
    """Single tokens as people read them."""

    def __init__(self, tokenizer: Any) -> None:
        self.reader = Reader(tokenizer)

    def __call__(self, number: int) -> str:
        return self.reader([number]).shown[0]
