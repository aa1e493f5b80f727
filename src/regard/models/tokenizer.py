"""Text of known words, as the small models of this package read it."""

import re
from collections.abc import Iterable, Sequence

from regard.errors import ModelError


class WordTokenizer:
    """One id per word. Words stand between white space; signs of the vocabulary, such as a comma, need none.

    A word that is not in the vocabulary is a `ModelError`. There are no special tokens.

    >>> words = WordTokenizer(["A", "B", "cat", "."])
    >>> words.encode("A B cat. A")
    [0, 1, 2, 3, 0]
    >>> words.decode([0, 1, 2, 3, 0])
    'A B cat . A'
    >>> words.encode("A dog")
    Traceback (most recent call last):
    regard.errors.ModelError: 'dog' is not among the 4 words of this model: A, B, cat, .; use those
    """

    special: frozenset[int] = frozenset()

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._ids = {word: i for i, word in enumerate(self.vocabulary)}
        if len(self._ids) < len(self.vocabulary):
            raise ModelError(f"{len(self.vocabulary)} words came, but only {len(self._ids)} differ; give each one once")
        signs = "".join(re.escape(word) for word in self.vocabulary if len(word) == 1 and not word.isalnum())
        self._pattern = re.compile(rf"[{signs}]|[^\s{signs}]+" if signs else r"\S+")

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """The id of each word."""
        words = self._pattern.findall(text)
        unknown = next((word for word in words if word not in self._ids), None)
        if unknown is not None:
            listed = ", ".join(self.vocabulary[:16]) + (", …" if len(self) > 16 else "")
            raise ModelError(f"{unknown!r} is not among the {len(self)} words of this model: {listed}; use those")
        return [self._ids[word] for word in words]

    def decode(self, ids: Iterable[int]) -> str:
        """The words with spaces between them."""
        return " ".join(self.names(ids))

    def names(self, ids: Iterable[int]) -> list[str]:
        """The word of each id."""
        ids = list(ids)
        unknown = next((i for i in ids if self.id_to_token(i) is None), None)
        if unknown is not None:
            raise ModelError(f"id {unknown} came, but this model knows {len(self)} words; give 0 to {len(self) - 1}")
        return [self.vocabulary[i] for i in ids]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Which characters of the text each word is.

        >>> WordTokenizer(["A", "cat", "."]).offsets("A  cat.")
        [(0, 1), (3, 6), (6, 7)]
        """
        self.encode(text)  # refuses what is no word
        return [match.span() for match in self._pattern.finditer(text)]

    # Named as in the tokenizers package, and silent about what is not there as it is.

    def token_to_id(self, token: str) -> int | None:
        """The id of one word, or None."""
        return self._ids.get(token)

    def id_to_token(self, id: int) -> str | None:  # noqa: A002
        """The word with this id, or None."""
        return self.vocabulary[id] if 0 <= id < len(self) else None

    def __repr__(self) -> str:
        return f"WordTokenizer({len(self)} words)"
