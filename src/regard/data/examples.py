"""Pairs as ids, held compactly, and put together into padded batches."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.pairs import Pair
from regard.data.special import BEGIN, END, PAD
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError

LONGEST = 256
AT_ONCE = 4096  # pairs encoded at a time, so that Python lists of few of them exist together


class Example(NamedTuple):
    """One pair as ids, each side with END at its end."""

    source: list[int]
    target: list[int]


class Batch(NamedTuple):
    """What a model reads, what its decoder is fed and what that must say, padded on the right with PAD."""

    source: Int[Tensor, "b s"]
    target_in: Int[Tensor, "b t"]
    target_out: Int[Tensor, "b t"]


class Rows:
    """Many lists of ids as one array: row i is `flat[bounds[i] : bounds[i + 1]]`."""

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self.lengths = np.asarray([len(part) for part in parts], dtype=np.int64)
        self.bounds = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)

    def __getitem__(self, at: int) -> list[int]:
        return self.flat[self.bounds[at] : self.bounds[at + 1]].tolist()

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """These rows below each other, PAD after each."""
        lengths = self.lengths[rows]
        place = np.arange(lengths.max(initial=0))
        there = place < lengths[:, None]
        out = np.full(there.shape, PAD, dtype=np.int64)
        out[there] = self.flat[(self.bounds[rows][:, None] + place)[there]]
        return out


class Examples:
    """Encoded pairs. `kept` says which pair each example was; `dropped` counts those that were too long.

    >>> examples = Examples([[5, 6, 7], [8]], [[9], [10, 11]])
    >>> examples[1], examples.source_lengths
    (Example(source=[8, 2], target=[10, 11, 2]), array([4, 2]))
    >>> examples.collate([0, 1]).target_in
    tensor([[ 1,  9,  0],
            [ 1, 10, 11]])
    """

    def __init__(
        self, sources: Iterable[Sequence[int]], targets: Iterable[Sequence[int]], *, longest: int = LONGEST
    ) -> None:
        """Ids without special tokens; END is put after each. A pair with a side of more than `longest` is dropped."""
        kept, source, target = [], [], []
        total = 0
        for at, (one, other) in enumerate(zip(sources, targets, strict=True)):
            total += 1
            if max(len(one), len(other)) <= longest:
                kept.append(at)
                source.append(np.asarray([*one, END], dtype=np.int32))
                target.append(np.asarray([*other, END], dtype=np.int32))
        if total and not kept:
            raise DataError(f"all {total} examples are longer than {longest} tokens; allow longer ones, or cut them")
        self.source, self.target = Rows(source), Rows(target)
        self.kept, self.dropped = np.asarray(kept, dtype=np.int64), total - len(kept)

    @classmethod
    def encode(
        cls,
        pairs: Sequence[Pair],
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        *,
        longest: int = LONGEST,
    ) -> "Examples":
        """The examples of these pairs, in their order, without those of more than `longest` tokens on a side.

        >>> vocabulary = Vocabulary.train(["a cat", "a dog"], kind="words")
        >>> Examples.encode([Pair("a cat", "a dog"), Pair("dog", "a a a a")], vocabulary, vocabulary, longest=3).dropped
        1
        """
        return cls(
            encoded([pair.source for pair in pairs], source_vocabulary),
            encoded([pair.target for pair in pairs], target_vocabulary),
            longest=longest,
        )

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, at: int) -> Example:
        if not -len(self) <= at < len(self):
            raise IndexError(f"example {at} was asked for, but there are {len(self)}")
        return Example(self.source[at % len(self)], self.target[at % len(self)])

    @property
    def source_lengths(self) -> np.ndarray:
        """How many tokens each source has, END counted."""
        return self.source.lengths

    @property
    def target_lengths(self) -> np.ndarray:
        """How many tokens each target has, END counted."""
        return self.target.lengths

    def collate(self, indices: Any) -> Batch:
        """These examples as tensors of int64, one row each; of no examples, tensors without rows."""
        rows = np.asarray(indices, dtype=np.int64).reshape(-1)
        source, target_out = self.source.padded(rows), self.target.padded(rows)
        target_in = np.full_like(target_out, PAD)
        target_in[:, :1] = BEGIN
        target_in[:, 1:] = np.where(target_out[:, 1:] == PAD, PAD, target_out[:, :-1])
        return Batch(torch.from_numpy(source), torch.from_numpy(target_in), torch.from_numpy(target_out))


def encoded(texts: Sequence[str], vocabulary: Vocabulary) -> Iterable[list[int]]:
    """The ids of each text, encoded many at a time."""
    for start in range(0, len(texts), AT_ONCE):
        yield from vocabulary.encode_batch(texts[start : start + AT_ONCE])
