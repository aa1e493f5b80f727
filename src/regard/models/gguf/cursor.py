"""Values of a GGUF header, one after the other, each checked against the bytes that are left before it is read."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from regard.errors import ModelError
from regard.tokens.visible import cut

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
SMALLEST = {**{kind: struct.calcsize(letter) for kind, letter in SCALARS.items()}, STRING: 8, ARRAY: 12}  # bytes
DEPTH = 4  # arrays within arrays
LONGEST_KEY = 256  # characters of a key or of the name of a tensor


class Cursor:
    """A place in the bytes of a file. Whatever would be read beyond their end is a `ModelError`.

    >>> Cursor(b"\\x03\\0\\0\\0\\0\\0\\0\\0cat", "x.gguf").string()
    'cat'
    """

    def __init__(self, data: Any, name: str) -> None:
        self.data, self.name, self.at, self.size = data, name, 0, len(data)

    def must_have(self, count: int, what: str) -> None:
        """Refuse a file in which `count` bytes are no longer left."""
        if count > self.size - self.at:
            raise ModelError(
                f"{self.name} ends too early: {what} wants {count} bytes at {self.at}, but the file has {self.size}; "
                "fetch it again"
            )

    def number(self, letter: str, what: str) -> Any:
        """One number, as `struct` names it."""
        self.must_have(struct.calcsize(letter), what)
        (value,) = struct.unpack_from(letter, self.data, self.at)
        self.at += struct.calcsize(letter)
        return value

    def string(self, what: str = "a string") -> str:
        """A length and so many bytes of UTF-8; what is none is replaced."""
        count = self.number("<Q", what)
        self.must_have(count, what)
        self.at += count
        return str(bytes(self.data[self.at - count : self.at]), "utf-8", "replace")

    def key(self, what: str) -> str:
        """A string that names something: short, and on one line."""
        text = self.string(what)
        if len(text) > LONGEST_KEY or not text.isprintable() or "\ufffd" in text:
            raise ModelError(f"{self.name} has {cut(text, 40)!r} for {what}; fetch it again")
        return text

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        """A value of one of the 13 types."""
        if kind == STRING:
            return self.string(what)
        if kind == ARRAY and depth < DEPTH:
            return self.array(what, depth)
        if kind not in SCALARS:
            raise ModelError(f"{self.name} gives {what} as a value of type {kind}, which GGUF has not; fetch it again")
        return self.number(SCALARS[kind], what)

    def array(self, what: str, depth: int) -> list[Any]:
        """A type, a length and so many values."""
        kind, count = self.number("<I", what), self.number("<Q", what)
        self.must_have(count * SMALLEST.get(kind, 1), what)
        if kind in SCALARS:
            letter, start = SCALARS[kind], self.at
            self.at += count * SMALLEST[kind]
            numbers: list[Any] = np.frombuffer(self.data, np.dtype(letter), count, start).tolist()
            return numbers
        read: Callable[[], Any] = lambda: self.value(kind, what, depth + 1)  # noqa: E731
        return [read() for _ in range(count)]
