"""The ways in which the merges of a BPE vocabulary split words, worked out as they are met and kept."""

import json
from array import array
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from regard.data.pieces import BYTES
from regard.data.special import SPECIAL, UNKNOWN
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError


class BpeSplits:
    """Splits of words into pieces, by number, and what each merge makes of each.

    A split begins as single characters. What may be merged in it are the neighbours that the vocabulary merges: those
    that it learned to merge earlier come first, and of equals the leftmost. Taking the first until there is none is
    byte-pair encoding (Sennrich et al. 2016, algorithm 1). A character that is not known is its bytes, where the
    vocabulary has those, else `<unk>`.

    >>> vocabulary = Vocabulary.train(["a lower tower", "a lower flower"] * 2, size=300)
    >>> splits = BpeSplits(vocabulary)
    >>> at = np.array([splits.begin("▁tower")])
    >>> while splits.count(at)[0]:
    ...     at = splits.merge(at, np.array([0]))
    ...     print(vocabulary.names(splits.list_pieces(at)[0]))
    [' ', 't', 'o', 'w', 'er']
    [' ', 't', 'ow', 'er']
    [' ', 't', 'ower']
    [' ', 'tower']
    ['tower']
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        model = json.loads(vocabulary.json)["model"]
        if not has_merges(vocabulary):
            raise ConfigError("merges of pieces were wanted, but this vocabulary has none; give one of kind 'bpe'")
        self.ids: dict[str, int] = model["vocab"]
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        self.merges = {
            (self.ids[left], self.ids[right]): (rank, self.ids[left + right])
            for rank, (left, right) in enumerate(pairs)
        }
        self.spells_bytes = bool(model.get("byte_fallback"))
        self.age = 0  # how often all was forgotten
        self.forget()

    def __len__(self) -> int:
        return len(self.counts)

    def forget(self) -> None:
        """Keep none of the splits that were met: their numbers begin anew."""
        self.age += 1
        self.numbers: dict[tuple[int, ...], int] = {}
        self.starts, self.sizes, self.pieces = array("q"), array("q"), array("i")  # of each split, in all pieces
        self.firsts, self.counts = array("q"), array("q")  # of its merges, in all merges
        self.places, self.results = array("q"), array("q")  # of each merge: where it is, and the split it makes or -1

    def begin(self, word: str) -> int:
        """The split of a word into single characters."""
        return self.find(tuple(one for letter in word for one in self.spell(letter)))

    def spell(self, letter: str) -> list[int]:
        """The ids of one character."""
        if letter in self.ids:
            return [self.ids[letter]]
        spelled = [self.ids.get(BYTES[byte], -1) for byte in letter.encode()] if self.spells_bytes else [-1]
        return [self.ids[SPECIAL[UNKNOWN]]] if -1 in spelled else spelled

    def find(self, pieces: tuple[int, ...]) -> int:
        """The number of a split."""
        number = self.numbers.get(pieces)
        if number is None:
            number = self.numbers[pieces] = len(self.counts)
            ways = [(self.merges[pair][0], at) for at, pair in enumerate(pairwise(pieces)) if pair in self.merges]
            self.starts.append(len(self.pieces))
            self.sizes.append(len(pieces))
            self.pieces.extend(pieces)
            self.firsts.append(len(self.places))
            self.counts.append(len(ways))
            self.places.extend(at for _, at in sorted(ways))
            self.results.extend([-1] * len(ways))
        return number

    def count(self, splits: np.ndarray) -> np.ndarray:
        """How many merges each of these splits offers."""
        return np.asarray(self.counts)[splits]

    def merge(self, splits: np.ndarray, which: np.ndarray) -> np.ndarray:
        """What these splits become by their merges of these numbers."""
        slots = np.asarray(self.firsts)[splits] + which
        fresh = np.flatnonzero(np.asarray(self.results)[slots] < 0)
        for slot, split in dict(zip(slots[fresh].tolist(), splits[fresh].tolist())).items():
            self.results[slot] = self.find(self.join(split, self.places[slot]))
        return np.asarray(self.results)[slots]

    def join(self, split: int, at: int) -> tuple[int, ...]:
        """The pieces of a split, two of them as one."""
        start = self.starts[split]
        pieces = self.pieces[start : start + self.sizes[split]]
        return (*pieces[:at], self.merges[pieces[at], pieces[at + 1]][1], *pieces[at + 2 :])

    def list_pieces(self, splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the ids of all pieces of these splits, one after the other, how many each has)."""
        sizes = np.asarray(self.sizes)[splits]
        ends = np.cumsum(sizes)
        first = np.asarray(self.starts)[splits] - (ends - sizes)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first, sizes)
        return np.asarray(self.pieces)[places], sizes


def has_merges(vocabulary: Vocabulary) -> bool:
    """Whether a vocabulary makes its pieces by merging.

    >>> [has_merges(Vocabulary.train(["a cat"] * 2, kind=kind, size=300)) for kind in ("bpe", "unigram", "characters")]
    [True, False, False]
    """
    return bool(json.loads(vocabulary.json)["model"].get("merges"))


def split_words(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[list[str], list[np.ndarray]]:
    """(the different words of these texts, as the vocabulary splits before it merges, which of them each text has).

    >>> split_words(["a cat", "cat a"], Vocabulary.train(["a cat"], size=300))
    (['▁a', '▁cat'], [array([0, 1], dtype=int32), array([1, 0], dtype=int32)])
    """
    tokenizer = vocabulary.tokenizer
    numbers: dict[str, int] = {}
    normalise, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    rows = [
        np.asarray([numbers.setdefault(word, len(numbers)) for word, _ in split(normalise(text))], dtype=np.int32)
        for text in texts
    ]
    return list(numbers), rows
