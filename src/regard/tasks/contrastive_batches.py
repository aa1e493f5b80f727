"""Pairs of texts as numbers: which pairs learn together, and what a model reads of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batches import share
from regard.data.split import fold_text
from regard.data.text_pairs import TextPair
from regard.tasks.contrastive_loss import NONE
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.sentence_vectors import frame_texts

TOGETHER = 8  # batches among which pairs are sorted; with fewer, more padding
SPREAD = 1.3  # lengths count as up to so many times themselves, so that other pairs meet in each epoch


class TextPiece(NamedTuple):
    """Texts that are read at once, padded on the right, and how many tokens each has."""

    ids: Int[Tensor, "b t"]
    lengths: Int[Tensor, " b"]


class ContrastiveBatch(NamedTuple):
    """Pairs as a model reads them. `places` says which row of the pieces is each text: firsts, others, negatives."""

    pieces: list[TextPiece]
    places: Int[Tensor, " n"]
    said: Int[
        Tensor, "b 3"
    ]  # text, other, negative as numbers: the same for texts that count as the same, NONE of none


class EncodedPairs:
    """Pairs of texts as rows of ids, each distinct text once; at most `max_length` tokens of it are read.

    `pairs` are rows of texts: text, other, negative, or NONE where there is no negative. `said` has the same for what
    the texts say: those that `fold_text` takes for one have the same number.

    >>> from regard.models import embedded
    >>> tokens = EncoderTokenizer.wrap(embedded.tokenizer("filler"))
    >>> pairs = EncodedPairs(tokens, [TextPair("A cat.", "Cats!"), TextPair("a cat", "A cat.", "A dog.")], 16)
    >>> pairs.pairs.tolist(), pairs.said.tolist()
    ([[0, 1, -1], [2, 0, 3]], [[0, 1, -1], [0, 0, 2]])
    """

    def __init__(self, tokens: EncoderTokenizer, pairs: Sequence[TextPair], max_length: int) -> None:
        known: dict[str, int] = {}
        rows = [
            [known.setdefault(text, len(known)) if text else NONE for text in (pair.text, pair.other, pair.negative)]
            for pair in pairs
        ]
        folded: dict[str, int] = {}
        numbers = np.asarray([folded.setdefault(fold_text(text), len(folded)) for text in known], dtype=np.int64)
        self.pairs = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
        self.said = np.append(numbers, NONE)[self.pairs]
        self.texts = list(known)
        self.rows, self.truncated = frame_texts(tokens, self.texts, max_length)
        lengths = np.append(self.rows.lengths, 0)  # of a negative that is not there
        self.longest, self.tokens = lengths[self.pairs].max(1, initial=0), lengths[self.pairs].sum(1)

    def __len__(self) -> int:
        return len(self.pairs)

    def batches(self, size: int, *, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, each pair in one of them: at most `size` pairs, about equally many in each.

        Pairs are shuffled, sorted by about their lengths among those of `TOGETHER` batches, cut, and the batches are
        shuffled. So little is padding, a wrong answer is not known by its length, and other pairs meet in each epoch.
        """
        random = np.random.default_rng((seed, epoch))
        order = random.permutation(len(self))
        count = -(-len(order) // size)
        pools = [np.concatenate(some) for some in in_groups(np.array_split(order, count), TOGETHER)]
        made: list[np.ndarray] = []
        for pool in pools:
            about = self.longest[pool] * random.uniform(1, SPREAD, len(pool))
            made += np.array_split(pool[np.argsort(about)], -(-len(pool) // size))
        return [made[at] for at in random.permutation(len(made))]

    def shares(self, indices: np.ndarray, world: int) -> list[np.ndarray]:
        """A batch in parts of about equally many tokens, one for each process."""
        return [share(indices, rank, world, self.tokens) for rank in range(world)]

    def collate(self, indices: np.ndarray, pieces: int = 1) -> ContrastiveBatch:
        """These pairs, read in so many pieces. Of no pairs a text is read all the same, and counts nowhere."""
        first, other, negative = self.pairs[indices].T
        negative = negative[negative != NONE]
        rows = np.concatenate([first, other, negative])
        read = np.concatenate([rows, np.zeros(max(0, pieces - len(rows)), dtype=np.int64)])
        order = np.argsort(self.rows.lengths[read], kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        parts = [
            TextPiece(torch.from_numpy(self.rows.pad(some)), torch.from_numpy(self.rows.lengths[some]))
            for some in np.array_split(read[order], pieces)
        ]
        return ContrastiveBatch(parts, torch.from_numpy(places[: len(rows)]), torch.from_numpy(self.said[indices]))


def in_groups(items: Sequence[np.ndarray], size: int) -> list[Sequence[np.ndarray]]:
    """Consecutive items, `size` at a time; the rest stands with the last of them."""
    count = max(1, len(items) // size)
    return [items[at * size : (at + 1) * size if at + 1 < count else len(items)] for at in range(count)]
