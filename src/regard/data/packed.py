"""Documents as one row of tokens after the other, nothing padded: what a language model learns from."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from regard.data.byte_level import encode_plain
from regard.data.examples import RaggedArray
from regard.data.special import BEGIN, END, PAD
from regard.errors import DataError

AT_ONCE = 1024  # documents encoded at a time, so that Python lists of few of them exist together


class PackedDocuments:
    """The tokens of all documents, each with BEGIN before and END after it, in one array of two or four bytes each.

    Row r has the `context + 1` tokens from `r · context` on, so that each token but the first follows once within a
    row. What is left after the last whole row is left out, or with `whole` a row of its own, PAD after it.

    >>> texts = PackedDocuments([[7, 8, 9], [5], [6, 6]], context=4)
    >>> texts.read([0, 1])
    array([[1, 7, 8, 9, 2],
           [2, 1, 5, 2, 1]])
    >>> texts.read([0], order=[2, 1, 0])
    array([[1, 6, 6, 2, 1]])
    """

    def __init__(self, documents: Iterable[Iterable[int]], *, context: int, whole: bool = False) -> None:
        flat, lengths = array("i"), array("q")
        for ids in documents:
            before = len(flat)
            flat.extend((BEGIN, *ids, END))
            lengths.append(len(flat) - before)
        if not lengths:
            raise DataError("no document is left to read; give a text with something in it")
        tokens = np.frombuffer(flat, dtype=np.intc)
        self.flat = tokens.astype(np.uint16 if tokens.max() < 2**16 else np.int32)
        self.lengths = np.frombuffer(lengths, dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.context = context
        following = len(self.flat) - 1
        self.rows = max(1, -(-following // context) if whole else following // context)

    @classmethod
    def encode(cls, texts: Iterable[str], tokenizer: Any, *, context: int, whole: bool = False) -> "PackedDocuments":
        """The documents of these texts, of which only a few are in memory at a time."""

        def encode_each() -> Iterator[list[int]]:
            left = iter(texts)
            while some := list(islice(left, AT_ONCE)):
                yield from encode_plain(tokenizer, some)

        return cls(encode_each(), context=context, whole=whole)

    def pieces(self) -> RaggedArray:
        """Each document by itself, a longer one in pieces of at most `context` tokens."""
        last = (self.lengths - 1) % self.context + 1
        pieces = (self.lengths - last) // self.context + 1
        lengths = np.full(pieces.sum(), self.context)
        lengths[np.cumsum(pieces) - 1] = last
        return RaggedArray.cut(self.flat, lengths)

    def document(self, at: int) -> list[int]:
        """The tokens of one document, BEGIN and END too."""
        ids: list[int] = self.flat[self.starts[at] : self.starts[at] + self.lengths[at]].tolist()
        return ids

    def read(self, rows: Any, order: Any = None) -> np.ndarray:
        """These rows, (b, context + 1), where documents follow each other in an order: as they came unless given."""
        taken = np.arange(len(self.lengths)) if order is None else np.asarray(order)
        ends = np.cumsum(self.lengths[taken])
        place = np.asarray(rows, dtype=np.int64)[:, None] * self.context + np.arange(self.context + 1)  # b t
        inside = np.minimum(place, ends[-1] - 1)
        slot = np.searchsorted(ends, inside, side="right")  # which document, in this order
        document = taken[slot]
        begun = ends[slot] - self.lengths[document]
        ids = self.flat[self.starts[document] + inside - begun].astype(np.int64)
        return np.where(place < ends[-1], ids, PAD)
