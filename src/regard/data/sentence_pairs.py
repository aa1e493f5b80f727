"""Documents → pairs of texts, of which the second follows the first, or stands in another document."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from regard.data.byte_level import encode_plain
from regard.data.examples import RaggedArray
from regard.data.sentences import split_sentences
from regard.errors import DataError

AT_ONCE = 64  # documents encoded at a time, so that Python lists of few of them exist together


class EncodedSentence(NamedTuple):
    """A sentence as tokens: at the beginning of a text, and after another one, where a space stands before it."""

    alone: list[int]
    inside: list[int]


class SentencePair(NamedTuple):
    """Two texts as ids without special tokens, and whether the second follows the first."""

    first: list[int]
    second: list[int]
    is_next: bool


class PairLayout(NamedTuple):
    """The pairs of one epoch: where each text begins and ends, counted in sentences, in the order of the first."""

    first: np.ndarray  # the sentence that a first text begins with, ascending
    first_end: np.ndarray
    second: np.ndarray
    second_end: np.ndarray
    is_next: np.ndarray


class SentencePairs:
    """The sentences of all documents as tokens, and the pairs that are made of them anew in each epoch.

    A document is cut into texts of whole sentences with at most `longest` tokens each; how long its first one is, is
    drawn, so that each epoch cuts elsewhere. Each text but the last of its document is the first of one pair. The
    second is the text that follows it, or, for half of the pairs, any text of another document that follows a text
    there: what stands second is the same either way, so that only its sense tells (Devlin et al. 2019, §3.1).

    A sentence of more than `longest` tokens is cut into pieces. A document of one sentence is in no pair; `left_out`
    counts them. All is drawn from (seed, epoch).

    >>> cat, dog, end = EncodedSentence([7, 8], [6]), EncodedSentence([5], [5]), EncodedSentence([9], [9])
    >>> pairs = SentencePairs([[cat, end], [dog, cat, end], [end]], longest=2)
    >>> layout = pairs.layout(seed=0, epoch=0)
    >>> for at in range(len(layout.first)):
    ...     pairs.read(layout, at)
    SentencePair(first=[7, 8], second=[9], is_next=True)
    SentencePair(first=[5, 6], second=[9], is_next=False)
    >>> pairs.left_out
    1
    """

    def __init__(self, documents: Iterable[Iterable[EncodedSentence]], *, longest: int) -> None:
        alone, inside, sizes = TokenLists(), TokenLists(), array("q", [0])
        for sentences in documents:
            for piece in chain.from_iterable(cut_sentence(one, longest) for one in sentences):
                alone.append(piece.alone)
                inside.append(piece.inside)
            sizes.append(len(alone.lengths))
        self.longest = longest
        self.alone, self.inside = alone.as_rows(), inside.as_rows()
        self.documents = np.frombuffer(sizes, dtype=np.int64)  # the first sentence of each document, and the end
        self.begun = self.inside.bounds[:-1] + self.inside.lengths - self.alone.lengths  # of a text that begins there
        counts = np.diff(self.documents)
        self.left_out = int((counts < 2).sum())
        if (counts > 1).sum() < 2:
            raise DataError(
                f"{(counts > 1).sum()} of {len(counts)} documents have two sentences or more, but two such documents "
                "are wanted: a second text follows the first, or is of another document; split the text otherwise"
            )

    @classmethod
    def encode(cls, texts: Iterable[str], tokenizer: Any, *, longest: int) -> "SentencePairs":
        """The sentences of these documents, of which only a few are in memory at a time."""

        def encode_each() -> Iterator[Iterator[EncodedSentence]]:
            left = iter(texts)
            while some := list(islice(left, AT_ONCE)):
                documents = [split_sentences(text) for text in some]
                sentences = list(chain.from_iterable(documents))
                alone = encode_plain(tokenizer, sentences)
                inside = encode_plain(tokenizer, [f" {sentence}" for sentence in sentences])
                encoded = map(EncodedSentence, alone, inside)
                yield from (islice(encoded, len(document)) for document in documents)

        return cls(encode_each(), longest=longest)

    @property
    def sentences(self) -> int:
        """How many sentences there are, the pieces of long ones counted each."""
        return len(self.begun)

    def layout(self, *, seed: int, epoch: int) -> PairLayout:
        """The pairs of an epoch."""
        random = np.random.default_rng((seed, epoch, 3))
        starts, document = self.cut(random.integers(1, self.longest + 1, len(self.documents) - 1))
        ends = np.append(starts[1:], self.sentences)
        second = np.flatnonzero(document[1:] == document[:-1]) + 1  # texts that follow one of their document
        other = draw_others(document[second], random)
        is_next = random.random(len(second)) < 0.5
        chosen = np.where(is_next, second, second[other])
        return PairLayout(starts[second - 1], ends[second - 1], starts[chosen], ends[chosen], is_next)

    def cut(self, first_lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where texts begin, in sentences, and of which document each is.

        The first of a document has at most so many tokens, but for its first sentence, and leaves one to follow it.
        """
        starts, document = array("q"), array("q")
        begun, ends, edges = self.begun.tolist(), self.inside.bounds[1:].tolist(), self.documents.tolist()
        for number, limit in enumerate(first_lengths.tolist()):
            here, end = edges[number], edges[number + 1]
            stop = end - 1
            while here < end:
                starts.append(here)
                document.append(number)
                first = begun[here]
                here += 1
                while here < stop and ends[here] - first <= limit:
                    here += 1
                stop, limit = end, self.longest
        return np.frombuffer(starts, dtype=np.int64), np.frombuffer(document, dtype=np.int64)

    def read(self, layout: PairLayout, at: int) -> SentencePair:
        """One pair as ids."""
        first, first_end, second, second_end, is_next = (int(column[at]) for column in layout)
        return SentencePair(self.tokens(first, first_end), self.tokens(second, second_end), bool(is_next))

    def tokens(self, start: int, end: int) -> list[int]:
        """A text of the sentences from `start` to before `end`."""
        bounds = self.inside.bounds
        following: list[int] = self.inside.flat[bounds[start + 1] : bounds[end]].tolist()
        return self.alone[start] + following

    def lengths(self, layout: PairLayout) -> np.ndarray:
        """How many tokens each pair has."""
        ends = self.inside.bounds
        total: np.ndarray = ends[layout.first_end] - self.begun[layout.first]
        return total + ends[layout.second_end] - self.begun[layout.second]


class TokenLists:
    """Many lists of ids, gathered one by one into one array, in two bytes for each id where that suffices.

    >>> lists = TokenLists()
    >>> for ids in ([7, 65535], [8, 65536]):
    ...     lists.append(ids)
    ...     print(lists.as_rows().flat.dtype, lists.as_rows().flat.tolist())
    uint16 [7, 65535]
    int32 [7, 65535, 8, 65536]
    """

    def __init__(self) -> None:
        self.flat, self.lengths = array("H"), array("q")

    def append(self, ids: list[int]) -> None:
        if self.flat.typecode == "H" and max(ids, default=0) >= 2**16:
            self.flat = array("i", self.flat)
        self.flat.extend(ids)
        self.lengths.append(len(ids))

    def as_rows(self) -> RaggedArray:
        """All of them; nothing is copied."""
        flat = np.frombuffer(self.flat, dtype=np.uint16 if self.flat.typecode == "H" else np.int32)
        return RaggedArray.cut(flat, np.array(self.lengths, dtype=np.int64))


def cut_sentence(sentence: EncodedSentence, longest: int) -> list[EncodedSentence]:
    """The sentence, or pieces of it of at most `longest` tokens.

    >>> cut_sentence(EncodedSentence([5, 6, 7], [8, 7]), 2)
    [EncodedSentence(alone=[5, 6], inside=[5, 6]), EncodedSentence(alone=[7], inside=[7])]
    """
    if max(map(len, sentence)) <= longest:
        return [sentence]
    pieces = (sentence.alone[start : start + longest] for start in range(0, len(sentence.alone), longest))
    return [EncodedSentence(piece, piece) for piece in pieces]


def draw_others(groups: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """For each entry the index of one of another group, each of them equally likely; `groups` are in order.

    >>> draw_others(np.array([4, 4, 5]), np.random.default_rng(0))
    array([2, 2, 0])
    """
    low, high = np.searchsorted(groups, groups, side="left"), np.searchsorted(groups, groups, side="right")
    drawn = (random.random(len(groups)) * (len(groups) - (high - low))).astype(np.int64)
    return np.where(drawn < low, drawn, drawn + high - low)
