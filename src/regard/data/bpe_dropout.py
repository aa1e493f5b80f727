"""BPE-dropout: each text is cut into other pieces in each epoch, because merges are passed over at random.

The dropout of `tokenizers` draws from a generator that nobody can seed. Here what is passed over follows from the
seed, the epoch, the text, the word and the step, so a run that is stopped and resumed reads the same pieces.
"""

from collections.abc import Sequence

import numpy as np

from regard.data.bpe_splits import BpeSplits, split_words
from regard.data.examples import RaggedArray
from regard.data.random_bits import draw_bits, mix
from regard.data.special import END
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError

AT_ONCE = 1 << 18  # words
MOST_SPLITS = 1 << 19  # kept from one epoch to the next, some 200 bytes each


class BpeDropout:
    """Texts that are cut anew in each epoch, END after each (Provilkov et al. 2020, algorithm 1).

    At each step each merge that a word offers is passed over with probability `p`, and the first that is left is made;
    where none is left, the word is done. `p` = 0 gives what the vocabulary gives, `p` = 1 single characters. Whatever
    the pieces are, they decode to the same text. A text that would have more than `longest` pieces in an epoch is cut
    as usual. `stream` tells two sides of a pair apart.

    >>> vocabulary = Vocabulary.train(["a lower tower", "a lower flower"] * 2, size=300)
    >>> texts = BpeDropout(["a lower tower"], vocabulary, p=0.4, seed=0)
    >>> [vocabulary.names(texts.cut(epoch)[0]) for epoch in range(2)]
    [['a', ' ', 'l', 'ower', ' ', 't', 'ow', 'er', '<eos>'], ['a', ' ', 'lower', 'tower', '<eos>']]
    """

    def __init__(
        self,
        texts: Sequence[str],
        vocabulary: Vocabulary,
        p: float | int,
        *,
        seed: int = 0,
        stream: int = 0,
        longest: int | None = None,
        splits: BpeSplits | None = None,
    ) -> None:
        if not 0 <= p <= 1:
            raise ConfigError(f"p is {p}, but it is the share of merges that are passed over; give 0 to 1")
        self.splits = BpeSplits(vocabulary) if splits is None else splits
        self.words, rows = split_words(texts, vocabulary)
        self.rows = RaggedArray(rows)
        self.begun, self.age = np.empty(0, dtype=np.int64), 0  # the splits with which words begin, and their age
        self.seed, self.stream, self.longest = seed, stream, longest
        self.chances = list_chances(p, max((len(word.encode()) for word in self.words), default=0))

    def __len__(self) -> int:
        return len(self.rows.lengths)

    def cut(self, epoch: int, texts: Sequence[int] | None = None) -> RaggedArray:
        """The ids of the texts of these numbers, of all unless given, as they are read in one epoch."""
        chosen = np.arange(len(self)) if texts is None else np.asarray(texts, dtype=np.int64)
        if len(self.splits) > MOST_SPLITS:
            self.splits.forget()
        if self.age != self.splits.age:
            self.begun = np.asarray([self.splits.begin(word) for word in self.words], dtype=np.int64)
            self.age = self.splits.age
        ends = np.cumsum(self.rows.lengths[chosen])
        parts = np.split(chosen, np.searchsorted(ends, np.arange(AT_ONCE, ends[-1] if len(ends) else 0, AT_ONCE)))
        cuts = [self.cut_some(epoch, some) for some in parts if len(some)]
        flat = [np.empty(0, dtype=np.int32), *(one.flat for one in cuts)]
        lengths = [np.empty(0, dtype=np.int64), *(one.lengths for one in cuts)]
        return RaggedArray.cut(np.concatenate(flat), np.concatenate(lengths))

    def cut_some(self, epoch: int, texts: np.ndarray) -> RaggedArray:
        """The same of a few texts."""
        counts, bounds = self.rows.lengths[texts], self.rows.bounds[texts]
        ends = np.cumsum(counts)
        place = np.arange(ends[-1]) - np.repeat(ends - counts, counts)  # of each word in its text
        owner = np.repeat(np.arange(len(texts)), counts)
        words = self.begun[self.rows.flat[bounds[owner] + place]]
        keys = draw_bits(self.seed, self.stream, epoch, texts[owner], place)
        splits = walk(self.splits, words, keys, self.chances)
        if self.longest is not None:
            total = np.bincount(owner, np.asarray(self.splits.sizes)[splits], minlength=len(texts))
            usual = (total > self.longest)[owner]
            splits[usual] = walk(self.splits, words[usual], keys[usual], list_chances(0, 0))
        flat, sizes = self.splits.list_pieces(splits)
        lengths = np.bincount(owner, sizes, minlength=len(texts)).astype(np.int64)
        return RaggedArray.cut(np.insert(flat, np.cumsum(lengths), END), lengths + 1)


def list_chances(p: float | int, most: int) -> np.ndarray:
    """How likely 1, 2, … up to `most` merges in a row are passed over, in units of 2⁻⁶⁴, rising; 0 is left out.

    >>> list_chances(0.5, 3) >> np.uint64(60)
    array([2, 4, 8], dtype=uint64)
    >>> len(list_chances(0, 3)), len(list_chances(0.5, 100))
    (0, 64)
    """
    chances, chance = [], 1.0
    for _ in range(most):
        chance *= p
        chances.append(min(int(chance * 2.0**64), 2**64 - 1))
    return np.asarray([one for one in reversed(chances) if one], dtype=np.uint64)


def walk(splits: BpeSplits, words: np.ndarray, keys: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """The splits that words end with, all of them a step at a time; `keys` are the random numbers of each."""
    found, going = words.copy(), np.arange(len(words))
    while len(going):
        keys = mix(keys)
        passed = len(chances) - np.searchsorted(chances, keys, side="right")  # how many in a row
        left = passed < splits.count(found[going])
        going, keys, passed = going[left], keys[left], passed[left]
        found[going] = splits.merge(found[going], passed)
    return found
