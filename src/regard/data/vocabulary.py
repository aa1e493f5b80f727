"""A vocabulary: text → ids and back, learned from texts and kept in one JSON file."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer

from regard.data.pieces import KINDS, SPACE
from regard.data.special import SPECIAL
from regard.errors import ConfigError, DataError
from regard.files import put


class Vocabulary:
    """Text ↔ ids, by a tokenizer of the `tokenizers` package, which is `tokenizer`.

    Ids 0 to 3 are `<pad>`, `<bos>`, `<eos>` and `<unk>`; text never becomes one of the first three, whatever it says.

    >>> vocabulary = Vocabulary.train(["the cat sat", "the cats"], kind="words", size=50)
    >>> vocabulary.encode("the cat"), vocabulary.names([4, 5]), vocabulary.decode([4, 5])
    ([4, 5], ['the', 'cat'], 'the cat')
    """

    def __init__(self, tokenizer: Tokenizer, text: str | None = None) -> None:
        found = tuple(tokenizer.id_to_token(number) for number in range(len(SPECIAL)))
        if found != SPECIAL:
            raise DataError(
                f"a vocabulary begins with {' '.join(SPECIAL)}, but this one with {' '.join(map(str, found))}; "
                "give one that Vocabulary.train made"
            )
        self.json = tokenizer.to_str() if text is None else text  # as it was read: another version may write otherwise
        tokenizer.encode_special_tokens = True  # "<eos>" in a text is a text; no file says this, so it is said here
        self.tokenizer = tokenizer

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        kind: str = "bpe",
        size: int = 8000,
        lower: bool = False,
        byte_fallback: bool | None = None,
    ) -> "Vocabulary":
        """A vocabulary of at most `size` tokens for these texts. The same texts, in any order, give the same one.

        `kind` is "bpe" or "unigram" (pieces of words), "characters" (for Chinese) or "words". Letters and punctuation
        never share a token. `lower` makes text lower case. With `byte_fallback` a character that is not known is
        spelled in 256 tokens for bytes; else it is `<unk>`. Left open, pieces of words have it, the others not.
        For one vocabulary of two languages, give the texts of both.

        >>> Vocabulary.train(["猫坐在垫子上。", "猫在这里。"], kind="characters").offsets("猫在上")
        [(0, 1), (1, 2), (2, 3)]
        """
        if kind not in KINDS:
            raise ConfigError(f"kind is {kind!r}; give one of {', '.join(KINDS)}")
        if isinstance(texts, str):
            raise DataError("one text came, but many were wanted; give a list of texts")
        listed = list(texts)
        wrong = next((type(text).__name__ for text in listed if not isinstance(text, str)), None)
        if wrong is not None:
            raise DataError(f"texts were wanted, but one of them is {wrong}; give strings")
        if not any(text.strip() for text in listed):
            raise DataError(f"{len(listed)} texts came, and nothing in them; give texts to learn from")
        fallback = kind in ("bpe", "unigram") if byte_fallback is None else byte_fallback
        return cls(KINDS[kind](listed, size, lower, fallback))

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.json == other.json

    def __hash__(self) -> int:
        return hash(self.json)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).parse, (self.json,)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, {self.fingerprint[:8]})"

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the file: the same for two vocabularies only if they are the same."""
        return hashlib.sha256(self.json.encode()).hexdigest()

    def normalise(self, text: str) -> str:
        """What `decode(encode(text))` gives back where all characters are known.

        >>> Vocabulary.train(["a cat"], lower=True).normalise("  A\\tCat ")
        'a cat'
        """
        return str(self.tokenizer.normalizer.normalize_str(text))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without `<bos>` and `<eos>`."""
        return self.encoding(text).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, quicker than one by one."""
        try:
            return [one.ids for one in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        except (TypeError, UnicodeError):
            return [self.encode(text) for text in texts]  # says which one is no text

    def decode(self, ids: Any) -> str:
        """The text of these ids, special tokens left out.

        An id outside of the vocabulary is refused.
        """
        return str(self.tokenizer.decode(self.known_ids(ids), skip_special_tokens=True))

    def known_ids(self, ids: Any) -> list[int]:
        """The same ids; one that is not in the vocabulary is refused."""
        numbers = [int(number) for number in ids]
        size = len(self)
        wrong = next((number for number in numbers if not 0 <= number < size), None)
        if wrong is not None:
            raise DataError(f"id {wrong} is not in this vocabulary of {size} tokens; give ids that it made")
        return numbers

    def names(self, ids: Any) -> list[str]:
        """Each of these tokens as it is spelled, without the mark of a space before it.

        >>> Vocabulary.train(["a cat"], kind="words").names([5, 2])
        ['cat', '<eos>']
        """
        numbers = self.known_ids(ids)
        return [str(self.tokenizer.id_to_token(number)).removeprefix(SPACE) or " " for number in numbers]

    def tokens(self, text: str) -> list[str]:
        """The names of the tokens of a text."""
        return self.names(self.encode(text))

    @property
    def special(self) -> frozenset[int]:
        """The ids of `<pad>`, `<bos>`, `<eos>` and `<unk>`."""
        return frozenset(range(len(SPECIAL)))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Which characters of the text each token is made from, spaces before it left out.

        >>> Vocabulary.train(["a cat"], kind="words").offsets(" a  cat")
        [(1, 2), (4, 7)]
        """
        encoding = self.encoding(text)
        starts = [start for start, _ in encoding.offsets]
        found = []
        for at, (name, (start, stop)) in enumerate(zip(encoding.tokens, encoding.offsets)):
            if name == SPACE:  # a space of the text, or one put before its first word
                found.append((start, stop) if text[start:stop].isspace() else (start, start))
                continue
            while start < stop and text[start].isspace():
                start += 1
            after = next((one for one in starts[at + 1 :] if one >= stop), len(text))
            while stop < after and not text[stop].isspace():  # marks that were composed with the letter before them
                stop += 1
            found.append((start, stop))
        return found

    def encoding(self, text: str) -> Encoding:
        """All that the tokenizer says of a text."""
        try:
            return self.tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeError) as error:
            raise DataError(
                f"a text was wanted, but {text!r:.40} is none; give a string of whole characters"
            ) from error

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file, whole or not at all; `tokenizers` and `transformers` can open it too."""
        try:
            put(Path(path), self.json.encode())
        except OSError as error:
            raise DataError(f"{path} cannot be written ({error.strerror}); give a folder that can be") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Vocabulary":
        """The vocabulary in a file that `save` wrote."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); give the file of a vocabulary") from error
        try:
            return cls.parse(data.decode())
        except UnicodeDecodeError:
            raise DataError(f"{path} is no text; give the file of a vocabulary") from None
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str) -> "Vocabulary":
        """The vocabulary that this JSON describes."""
        try:
            if "model" not in json.loads(text):
                raise ValueError("no model")
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # tokenizers raises plain exceptions
            raise DataError(f"this is no vocabulary ({error}); give the file that Vocabulary.save wrote") from error
        return cls(tokenizer, text)
