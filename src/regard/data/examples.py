"""Encoded examples, held compactly, and put together into padded batches: sequences, labels, spans, pictures."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.pairs import Pair
from regard.data.special import BEGIN, END, PAD
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError, ShapeError

LONGEST = 256
AT_ONCE = 4096  # texts encoded at a time, so that Python lists of few of them exist together
Ids = Sequence[int] | np.ndarray


class RaggedArray:
    """Many lists of ids as one array: row i is `flat[bounds[i] : bounds[i + 1]]`."""

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self.lengths = np.asarray([len(part) for part in parts], dtype=np.int64)
        self.bounds = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)

    @classmethod
    def cut(cls, flat: np.ndarray, lengths: np.ndarray) -> "RaggedArray":
        """An array cut into consecutive rows of these lengths; nothing is copied.

        >>> RaggedArray.cut(np.arange(5), np.array([2, 3]))[1]
        [2, 3, 4]
        """
        rows = cls([])
        rows.flat, rows.lengths = flat, lengths.astype(np.int64)
        rows.bounds = np.concatenate([[0], np.cumsum(rows.lengths)])
        return rows

    def __getitem__(self, at: int) -> list[int]:
        return self.flat[self.bounds[at] : self.bounds[at + 1]].tolist()

    def pad(self, rows: np.ndarray) -> np.ndarray:
        """These rows below each other, PAD after each."""
        lengths = self.lengths[rows]
        place = np.arange(lengths.max(initial=0))
        there = place < lengths[:, None]
        out = np.full(there.shape, PAD, dtype=np.int64)
        out[there] = self.flat[(self.bounds[rows][:, None] + place)[there]]
        return out


class Examples:
    """Examples of any number of sequences of ids, each of its own length, and of fields of one size for all.

    `sequences` are lists of ids by name. `fields` are arrays by name, one entry for each example: a label, the two
    ends of a span, a picture; one that lies in a file (`np.memmap`) stays there. An example with a sequence of more
    than `longest` ids is dropped; then `end`, where it is given, is put after each sequence. `kept` says which of
    those that came each example was, `dropped` counts the others.

    >>> examples = Examples({"text": [[5, 6, 7], [8]]}, {"label": [1, 0]})
    >>> examples[0], examples.lengths
    ({'text': [5, 6, 7], 'label': array(1)}, {'text': array([3, 1])})
    >>> examples.collate([1, 0])
    {'text': tensor([[8, 0, 0],
            [5, 6, 7]]), 'label': tensor([0, 1])}
    """

    def __init__(
        self,
        sequences: Mapping[str, Iterable[Ids]],
        fields: Mapping[str, Any] | None = None,
        *,
        longest: int = LONGEST,
        end: int | None = None,
    ) -> None:
        self.fields = {name: np.asanyarray(values) for name, values in (fields or {}).items()}
        parts: dict[str, list[np.ndarray]] = {name: [] for name in sequences}
        last = () if end is None else (end,)
        kept, total = [], 0
        for total, rows in enumerate(zip(*sequences.values(), strict=True), 1):
            if max(map(len, rows)) <= longest:
                kept.append(total - 1)
                for part, row in zip(parts.values(), rows):
                    part.append(np.asarray([*row, *last], dtype=np.int32))
        if total and not kept:
            raise DataError(f"all {total} examples are longer than {longest} tokens; allow longer ones, or cut them")
        if not sequences:
            total = len(next(iter(self.fields.values()), ()))
            kept = list(range(total))
        self.sequences = {name: RaggedArray(part) for name, part in parts.items()}
        self.kept, self.dropped = np.asarray(kept, dtype=np.int64), total - len(kept)
        wrong = next((name for name, values in self.fields.items() if values.shape[:1] != (total,)), None)
        if wrong is not None:
            came = self.fields[wrong].shape
            raise ShapeError(f"{wrong} came as {came} for {total} examples; give one entry for each")

    @classmethod
    def wrap(cls, sequences: Mapping[str, RaggedArray], fields: Mapping[str, Any] | None = None) -> "Examples":
        """Examples of sequences that are held already, none of them dropped; nothing is copied.

        >>> Examples.wrap({"text": RaggedArray.cut(np.arange(5), np.array([2, 3]))}, {"label": [1, 0]})[1]
        {'text': [2, 3, 4], 'label': array(0)}
        """
        made = cls({}, fields)
        made.sequences = dict(sequences)
        counts = {len(rows.lengths) for rows in made.sequences.values()} | ({len(made.kept)} if made.fields else set())
        if len(counts) > 1:
            raise ShapeError(
                f"{' and '.join(map(str, sorted(counts)))} entries came; give one of each for each example"
            )
        made.kept = np.arange(next(iter(counts), 0))
        return made

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, at: int) -> Any:
        if not -len(self) <= at < len(self):
            raise IndexError(f"example {at} was asked for, but there are {len(self)}")
        at %= len(self)
        fields = {name: np.asarray(values[self.kept[at]]) for name, values in self.fields.items()}
        return {name: rows[at] for name, rows in self.sequences.items()} | fields

    @property
    def lengths(self) -> dict[str, np.ndarray]:
        """How many tokens each sequence of each example has, as `batches` takes them."""
        return {name: rows.lengths for name, rows in self.sequences.items()}

    def collate(self, indices: Any) -> Any:
        """These examples as tensors by name, one row each: sequences as int64, padded on the right; fields as they are.

        Of no examples, tensors without rows.
        """
        rows = np.asarray(indices, dtype=np.int64).reshape(-1)
        sequences = {name: torch.from_numpy(one.pad(rows)) for name, one in self.sequences.items()}
        fields = {name: torch.from_numpy(np.array(values[self.kept[rows]])) for name, values in self.fields.items()}
        return sequences | fields


class PairExample(NamedTuple):
    """One pair as ids, each side with END at its end."""

    source: list[int]
    target: list[int]


class PairBatch(NamedTuple):
    """What a model reads, what its decoder is fed and what that must say, padded on the right with PAD."""

    source: Int[Tensor, "b s"]
    target_in: Int[Tensor, "b t"]
    target_out: Int[Tensor, "b t"]


class PairExamples(Examples):
    """Encoded pairs of a source and a target, each with END at its end.

    >>> examples = PairExamples([[5, 6, 7], [8]], [[9], [10, 11]])
    >>> examples[1], examples.lengths["source"]
    (PairExample(source=[8, 2], target=[10, 11, 2]), array([4, 2]))
    >>> examples.collate([0, 1]).target_in
    tensor([[ 1,  9,  0],
            [ 1, 10, 11]])
    """

    def __init__(self, sources: Iterable[Ids], targets: Iterable[Ids], *, longest: int = LONGEST) -> None:
        """Ids without special tokens. A pair with a side of more than `longest` is dropped."""
        super().__init__({"source": sources, "target": targets}, longest=longest, end=END)

    @classmethod
    def encode(
        cls,
        pairs: Sequence[Pair],
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        *,
        longest: int = LONGEST,
    ) -> "PairExamples":
        """The examples of these pairs, in their order, without those of more than `longest` tokens on a side.

        >>> vocabulary = Vocabulary.train(["a cat", "a dog"], kind="words")
        >>> pairs = [Pair("a cat", "a dog"), Pair("dog", "a a a a")]
        >>> PairExamples.encode(pairs, vocabulary, vocabulary, longest=3).dropped
        1
        """
        return cls(
            encode_texts([pair.source for pair in pairs], source_vocabulary),
            encode_texts([pair.target for pair in pairs], target_vocabulary),
            longest=longest,
        )

    def with_sequences(self, **sequences: RaggedArray) -> "PairExamples":
        """The same pairs, with a side or both as other ids, END among them.

        >>> examples = PairExamples([[5, 6], [7]], [[8], [9]])
        >>> examples.with_sequences(target=RaggedArray([np.array([3, 3, 2]), np.array([4, 2])]))[0]
        PairExample(source=[5, 6, 2], target=[3, 3, 2])
        """
        other = copy(self)
        other.sequences = self.sequences | sequences
        return other

    def __getitem__(self, at: int) -> PairExample:
        return PairExample(**super().__getitem__(at))

    def collate(self, indices: Any) -> PairBatch:
        """These pairs as tensors of int64, one row each; of no pairs, tensors without rows."""
        padded = super().collate(indices)
        target_out = padded["target"]
        target_in = torch.full_like(target_out, PAD)
        target_in[:, :1] = BEGIN
        target_in[:, 1:] = torch.where(target_out[:, 1:] == PAD, PAD, target_out[:, :-1])
        return PairBatch(padded["source"], target_in, target_out)


def encode_texts(texts: Sequence[str], vocabulary: Vocabulary) -> Iterable[list[int]]:
    """The ids of each text, encoded many at a time."""
    for start in range(0, len(texts), AT_ONCE):
        yield from vocabulary.encode_batch(texts[start : start + AT_ONCE])
