"""Words with their counts → pieces with their log-probabilities, so that the words become likely (Kudo 2018).

Written here because training must be repeatable: the trainer of `tokenizers` adds floats in the order of a random hash
and gives other scores each time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

LONGEST = 16  # characters of a piece; words are learned from in stretches of as many
MOST_WORDS = 200_000
SEEDS = 10  # pieces to begin with, for each that is wanted
KEPT = 0.75  # of the pieces, at each round
ROUNDS = 2  # of expectation and maximisation before pieces are dropped
FEWEST = 0.5  # expected uses of a piece that is kept


class Lattice(NamedTuple):
    """Every way to put words together from pieces: one entry for each place where a piece fits."""

    row: np.ndarray  # the word
    start: np.ndarray
    stop: np.ndarray
    piece: np.ndarray
    lengths: np.ndarray  # of every word, in characters

    def only(self, alive: np.ndarray) -> "Lattice":
        """The same without the pieces that are no more."""
        kept = alive[self.piece]
        return Lattice(self.row[kept], self.start[kept], self.stop[kept], self.piece[kept], self.lengths)


def learn_pieces(words: Mapping[str, int], alphabet: Sequence[str], size: int) -> list[tuple[str, float]]:
    """At most `size` pieces with log-probabilities, likely ones first. Every character of `alphabet` is one of them.

    Expectation and maximisation over all ways to put the words together, then the pieces whose loss would cost least
    likelihood are dropped, a quarter at a time. Equal ones are told apart by their text, so the order of the words
    does not matter.

    >>> [piece for piece, _ in learn_pieces({"the": 9, "then": 5, "hen": 4}, "then", 6)]
    ['the', 'hen', 'n', 't', 'e', 'h']
    """
    parts = stretches(words, set(alphabet))
    pieces, first = seeds(parts, sorted(set(alphabet)), size)
    count = np.asarray(list(parts.values()), dtype=np.float64)
    number = {piece: at for at, piece in enumerate(pieces)}
    single = np.asarray([len(piece) == 1 for piece in pieces])
    ways = lattice(list(parts), number)
    inside = lattice(pieces, number, whole=False)  # how each piece could be put together from others
    alive, chance = np.ones(len(pieces), dtype=bool), first / first.sum()
    while True:
        for _ in range(ROUNDS):
            used = expect_uses(ways, chance, count)
            alive &= single | (used >= FEWEST)
            chance = maximise(used, alive)
            ways, inside = ways.only(alive), inside.only(alive)
        if alive.sum() <= size:
            break
        keep = max(size, int(KEPT * alive.sum()))
        without = np.where(single, 0, best(inside, logarithm(chance)))  # single characters are not made of others
        loss = used * (logarithm(chance) - without)
        loss[single], loss[~alive] = np.inf, -np.inf
        alive[np.lexsort((np.arange(len(loss)), -loss))[keep:]] = False
        chance = maximise(used, alive)
        ways, inside = ways.only(alive), inside.only(alive)
    scores = np.round(logarithm(chance), 6)  # rounded: the last digits differ between machines
    found = [(pieces[at], float(scores[at])) for at in np.flatnonzero(alive)]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def stretches(words: Mapping[str, int], alphabet: set[str]) -> dict[str, int]:
    """The most frequent words, cut where a character is not in the alphabet and after every 16, in a fixed order."""
    counts: Counter[str] = Counter()
    for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS]:
        known = "".join(letter if letter in alphabet else "\n" for letter in word)
        for run in known.split("\n"):
            for at in range(0, len(run), LONGEST):
                counts[run[at : at + LONGEST]] += count
    return dict(sorted(counts.items()))


def seeds(parts: Mapping[str, int], alphabet: list[str], size: int) -> tuple[list[str], np.ndarray]:
    """The alphabet and the strings inside words that cover most characters, with how many they cover."""
    counts: Counter[str] = Counter()
    for part, count in parts.items():
        for start in range(len(part)):
            for stop in range(start + 1, len(part) + 1):
                counts[part[start:stop]] += count
    longer = sorted((-count * len(p), p) for p, count in counts.items() if len(p) > 1 and count > 1)[: SEEDS * size]
    covered = [float(max(counts[letter], 1)) for letter in alphabet] + [float(-cover) for cover, _ in longer]
    return [*alphabet, *(piece for _, piece in longer)], np.asarray(covered)


def lattice(words: Sequence[str], number: Mapping[str, int], *, whole: bool = True) -> Lattice:
    """Every place of every piece in the words; without `whole`, a word is not a piece of itself."""
    spans = [
        np.asarray([(a, b) for a in range(n) for b in range(a + 1, n + 1) if whole or b - a < n], dtype=np.int64)
        for n in range(LONGEST + 1)
    ]
    listed = [[(a, b) for a, b in some.tolist()] for some in spans]
    none = len(number)
    piece = np.asarray([number.get(word[a:b], none) for word in words for a, b in listed[len(word)]], dtype=np.int64)
    lengths = np.asarray([len(word) for word in words], dtype=np.int64)
    row = np.repeat(np.arange(len(words)), np.asarray([len(some) for some in spans])[lengths])
    start, stop = np.concatenate([spans[length].reshape(-1, 2) for length in lengths]).T
    there = np.flatnonzero(piece < none)
    order = there[np.argsort(stop[there], kind="stable")]
    return Lattice(row[order], start[order], stop[order], piece[order], lengths)


def expect_uses(ways: Lattice, chance: np.ndarray, count: np.ndarray) -> np.ndarray:
    """How often each piece is used, over all ways to put the words together (forward–backward)."""
    rows, longest = len(ways.lengths), int(ways.lengths.max(initial=0))
    step = chance[ways.piece]
    before, after = np.zeros((rows, longest + 1)), np.zeros((rows, longest + 1))
    before[:, 0] = 1
    after[np.arange(rows), ways.lengths] = 1
    bounds = np.searchsorted(ways.stop, np.arange(longest + 2))
    for stop in range(1, longest + 1):
        some = slice(bounds[stop], bounds[stop + 1])
        reached = before[ways.row[some], ways.start[some]] * step[some]
        before[:, stop] = np.bincount(ways.row[some], reached, minlength=rows)
    order = np.argsort(ways.start, kind="stable")
    bounds = np.searchsorted(ways.start[order], np.arange(longest + 2))
    for start in range(longest - 1, -1, -1):
        at = order[bounds[start] : bounds[start + 1]]
        reached = after[ways.row[at], ways.stop[at]] * step[at]
        after[:, start] += np.bincount(ways.row[at], reached, minlength=rows)
    share = before[ways.row, ways.start] * step * after[ways.row, ways.stop] / after[ways.row, 0]
    return np.bincount(ways.piece, share * count[ways.row], minlength=len(chance))


def maximise(used: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """The probabilities that fit these uses best; a character that was not used keeps a little."""
    kept = np.where(alive, np.maximum(used, FEWEST), 0)
    return kept / kept.sum()


def best(ways: Lattice, score: np.ndarray) -> np.ndarray:
    """The log-probability of the likeliest way to put each word together (Viterbi)."""
    rows, longest = len(ways.lengths), int(ways.lengths.max(initial=0))
    reached = np.full((rows, longest + 1), -np.inf)
    reached[:, 0] = 0
    bounds = np.searchsorted(ways.stop, np.arange(longest + 2))
    for stop in range(1, longest + 1):
        some = slice(bounds[stop], bounds[stop + 1])
        arrived = reached[ways.row[some], ways.start[some]] + score[ways.piece[some]]
        np.maximum.at(reached[:, stop], ways.row[some], arrived)
    return reached[np.arange(rows), ways.lengths]


def logarithm(chance: np.ndarray) -> np.ndarray:
    """The logarithm, and that of something very small where there is nothing."""
    return np.log(np.maximum(chance, 1e-300))
