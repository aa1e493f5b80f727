"""Labelled texts → ids and the numbers of their classes, encoded as they are read: no file is held as strings."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.data.byte_level import encode_plain
from regard.data.examples import Examples, RaggedArray
from regard.data.labelled import LabelledText, LabelledTexts
from regard.data.lines import refuse
from regard.tasks.encoder_tokens import EncoderTokenizer

AT_ONCE = 1024  # texts encoded at a time, or fewer long ones:
LETTERS = 2**20
HEAD = 4  # a text that is too long keeps its beginning as a quarter of what is kept, and its end


class EncodedTexts(NamedTuple):
    """Examples with a sequence "text" and a field "label", and how many of them were cut."""

    examples: Examples
    cut: int


def cut_middle(ids: Sequence[int], room: int) -> Sequence[int]:
    """At most `room` ids: a quarter from the beginning, the others from the end (Sun et al. 2019, §5.3.1: head+tail).

    >>> cut_middle([1, 2, 3, 4, 5, 6, 7, 8, 9], 4)
    [1, 7, 8, 9]
    """
    if len(ids) <= room:
        return ids
    head = room // HEAD
    return [*ids[:head], *ids[len(ids) - (room - head) :]]


def frame_texts(tokens: EncoderTokenizer, texts: Sequence[str], max_length: int) -> list[tuple[list[int], bool]]:
    """Each text as the ids that the model reads, at most `max_length`, and whether it was cut."""
    room = max_length - len(tokens.before) - len(tokens.after)
    plain = encode_plain(tokens.tokenizer, texts)
    return [([*tokens.before, *cut_middle(ids, room), *tokens.after], len(ids) > room) for ids in plain]


def chunk_texts(texts: Iterable[LabelledText]) -> Iterator[list[LabelledText]]:
    """Some texts at a time, so that their tokens fit the memory however long they are."""
    some: list[LabelledText] = []
    letters = 0
    for one in texts:
        some.append(one)
        letters += len(one.text)
        if len(some) == AT_ONCE or letters >= LETTERS:
            yield some
            some, letters = [], 0
    if some:
        yield some


class GrowingExamples:
    """Ids and labels while they come, two or four bytes each."""

    def __init__(self, vocab_size: int) -> None:
        self.flat = array("H" if vocab_size <= 2**16 else "i")
        self.lengths, self.labels, self.cut = array("i"), array("i"), 0

    def add(self, ids: list[int], label: int, cut: bool) -> None:
        self.flat.extend(ids)
        self.lengths.append(len(ids))
        self.labels.append(label)
        self.cut += cut

    def finish(self) -> EncodedTexts:
        flat = np.frombuffer(self.flat, dtype=np.uint16 if self.flat.typecode == "H" else np.int32)
        rows = RaggedArray.cut(flat, np.frombuffer(self.lengths, dtype=np.int32))
        labels = np.frombuffer(self.labels, dtype=np.int32).astype(np.int64)
        return EncodedTexts(Examples.wrap({"text": rows}, {"label": labels}), self.cut)


def encode_labelled(
    texts: LabelledTexts,
    tokens: EncoderTokenizer,
    classes: Sequence[str],
    *,
    max_length: int,
    parts: np.ndarray | None = None,
) -> list[EncodedTexts]:
    """The texts of each part (0, 1, 2), in order; `parts` has one for each text, all are in the first unless given.

    A label that is none of `classes` is refused with its line.
    """
    numbers = {name: number for number, name in enumerate(classes)}
    size = tokens.tokenizer.get_vocab_size()
    made = [GrowingExamples(size) for _ in range(3)]
    at = 0
    for some in chunk_texts(texts):
        for one, (ids, cut) in zip(some, frame_texts(tokens, [one.text for one in some], max_length)):
            must_be_class(one.label, numbers, one.path, one.line)
            made[0 if parts is None else int(parts[at])].add(ids, numbers[one.label], cut)
            at += 1
    return [one.finish() for one in made]


def must_be_class(label: str, classes: Collection[str], path: Path, line: int) -> None:
    """Refuse a label that a classifier does not know, with its line."""
    if label not in classes:
        known = ", ".join(map(repr, list(classes)[:8])) + (", …" if len(classes) > 8 else "")
        refuse(path, line, f"the label {label[:40]!r} is new; the classes are {known}")


def tell_cut(count: int, max_length: int) -> list[str]:
    """A sentence where texts were longer than what is read of them."""
    if not count:
        return []
    which = "1 text is" if count == 1 else f"{count:,} texts are"
    return [
        f"{which} longer than {max_length} tokens: a quarter of that is read from the beginning, the rest from the end"
    ]
