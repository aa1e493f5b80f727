"""Text files → documents, one at a time, and which of them are held out."""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from regard.data.lines import stream_lines
from regard.data.split import fold_text, hash_sentence
from regard.errors import ConfigError, DataError

HEADING = re.compile(r"\s*= [^=]([^\n]*[^=])? =\s*")  # of the first level, as wikis write them: = Title =


def stream_documents(path: Path, split: str) -> Iterator[str]:
    """The documents of a text file: its paragraphs, its lines, all of it, or what stands under each heading.

    Blank lines end a paragraph. A heading is a line ` = Title = ` between blank ones; those of deeper levels,
    ` = = Section = = `, belong to the document. Spaces around a document are no part of it, and one without anything
    else is none.
    """
    if split not in SPLITS:
        raise ConfigError(f"split is {split!r}; choose one of {', '.join(SPLITS)}")
    for lines in SPLITS[split](stream_lines(path)):
        if text := "\n".join(lines).strip():
            yield text


def split_by_blank(lines: Iterable[str]) -> Iterator[list[str]]:
    gathered: list[str] = []
    for line in lines:
        if line.strip():
            gathered.append(line)
        else:
            yield gathered
            gathered = []
    yield gathered


def split_by_heading(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines from one heading to the next.

    >>> list(split_by_heading([" = One = ", "", "a", "= b =", "", " = = c = = ", "", " = Two = "]))
    [[' = One = ', '', 'a', '= b =', '', ' = = c = = ', ''], [' = Two = ']]
    """
    gathered: list[str] = []
    before = ""
    for line, after in pairwise(chain(lines, [""])):
        if gathered and HEADING.fullmatch(line) and not before.strip() and not after.strip():
            yield gathered
            gathered = []
        gathered.append(line)
        before = line
    yield gathered


SPLITS: dict[str, Callable[[Iterable[str]], Iterable[list[str]]]] = {
    "paragraph": split_by_blank,
    "line": lambda lines: ([line] for line in lines),
    "file": lambda lines: [list(lines)],
    "heading": split_by_heading,
}


def split_paths(named: str) -> list[Path]:
    """The files that a setting names, as 'a.txt,b.txt.gz'."""
    paths = [Path(part.strip()) for part in named.split(",") if part.strip()]
    if not paths:
        raise ConfigError("no text was named; give one file, or several as 'a.txt,b.txt.gz'")
    return paths


@dataclass(frozen=True)
class DocumentSet:
    """The documents of several files, read anew each time they are gone through: only one is in memory.

    `held_out` are hashes of documents. With `inside` only those are here, without it all the others. `fold_text` says
    what counts as the same document.
    """

    paths: Sequence[Path]
    split: str = "paragraph"
    seed: int = 0
    held_out: frozenset[bytes] = frozenset()
    inside: bool = False

    def __iter__(self) -> Iterator[str]:
        for path in self.paths:
            for text in stream_documents(path, self.split):
                if not self.held_out or (self.hash(text) in self.held_out) == self.inside:
                    yield text

    def must_hold_text(self) -> None:
        """Refuse files without any text."""
        if next(iter(self), None) is None:
            raise self.empty_error()

    def empty_error(self) -> DataError:
        return DataError(f"{', '.join(map(str, self.paths))} holds no text; give a file with some")

    def hash(self, text: str) -> bytes:
        return hash_sentence(fold_text(text), self.seed)

    def hold_out(self, count: int) -> tuple["DocumentSet", "DocumentSet"]:
        """Those to learn from, and about `count` to be judged by: no text stands in both, and no order matters.

        A `count` of 0 is a tenth of them, at least one and at most 500.
        """
        hashes = {self.hash(text) for text in self}
        if not hashes:
            raise self.empty_error()
        count = count or min(500, max(1, len(hashes) // 10))
        if count >= len(hashes):
            raise DataError(
                f"{count} documents for validation leave nothing to learn from, as there are {len(hashes)} distinct "
                "ones; hold out fewer, name a file for validation, or split the text otherwise"
            )
        least = frozenset(heapq.nsmallest(count, hashes))
        parts = (DocumentSet(self.paths, self.split, self.seed, least, inside) for inside in (False, True))
        train, held = parts
        return train, held


def count_words_and_bytes(texts: Iterable[str]) -> tuple[int, int]:
    """How many words, between white space, and how many bytes of UTF-8 these texts have.

    >>> count_words_and_bytes(["a cat", "猫"])
    (3, 8)
    """
    words = size = 0
    for text in texts:
        words, size = words + len(text.split()), size + len(text.encode())
    return words, size
