"""Tokens as people read them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """One sequence of tokens. All tuples have one entry per token."""

    shown: tuple[str, ...]  # readable text
    ids: tuple[int, ...] | None = None
    offsets: tuple[tuple[int, int] | None, ...] | None = None  # characters of `text`
    special: tuple[bool, ...] | None = None
    words: tuple[int | None, ...] | None = None  # which word a piece belongs to
    text: str | None = None
    grid: tuple[int, int] | None = None  # rows and columns of image patches

    def __len__(self) -> int:
        return len(self.shown)
