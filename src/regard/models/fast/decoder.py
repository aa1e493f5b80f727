"""Tokens through compiled kernels, with a cache: what every state of the fast engine is made of."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Timer

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.fast.step import run_step
from regard.models.fast.tables import TOKEN, pad
from regard.models.fast.weights import Records, StoredWeights
from regard.models.fast.workers import WORKERS
from regard.models.fast.workspace import MOST_TOKENS, Workspace
from regard.positions import Rotary

PATIENCE = 3.0  # seconds; kernels from the disk are there sooner


@contextmanager
def tell_of_compiling() -> Iterator[None]:
    """Says on stderr what takes so long, where kernels were not compiled on this machine yet."""
    if run_step.overloads:
        yield
        return
    timer = Timer(PATIENCE, logging.getLogger("regard").warning, ["compiling kernels, once on this machine …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Turns:
    """Cosines and sines of rotary positions, computed as far as they were asked for."""

    def __init__(self, rotary: Rotary) -> None:
        self.rotary = rotary
        self.cos = self.sin = torch.zeros(0, rotary.width // 2)

    def reach(self, positions: int) -> None:
        """Know the first so many positions."""
        if positions > len(self.cos):
            known = pad(max(positions, 2 * len(self.cos)), 256)
            cos, sin = self.rotary.compute(torch.arange(known), torch.float32)
            half = cos.shape[-1] // 2
            self.cos, self.sin = cos[:, :half].contiguous(), sin[:, half:].contiguous()


class KernelDecoder:
    """Some rows of text, read token by token: `read` gives logits, and remembers keys and values."""

    def __init__(self, weights: StoredWeights, rows: int, left_padding: Sequence[int] | None = None) -> None:
        config = weights.config
        self.weights, self.seen = weights, 0
        self.padding = list(left_padding) if left_padding is not None else [0] * rows
        self.turns = Turns(Rotary(weights.head_width, base=config.rope_base, scaling=config.scaling))
        self.workspace = Workspace(weights, rows, torch.get_num_threads())

    @property
    def rows(self) -> int:
        return self.workspace.rows

    def read(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits after the last of them."""
        self.make_room(ids.shape[1])
        logits = torch.empty(len(ids), pad(self.weights.config.vocab_size))
        for tokens, last in self._cut(ids.tolist()):
            self._run(tokens, logits[last])
        self.seen += ids.shape[1]
        return logits[:, : self.weights.config.vocab_size]

    def read_all(self, ids: Int[Tensor, "1 t"]) -> Float[Tensor, "t n"]:
        """Reads the next tokens of the only row; the logits after each of them."""
        new = ids.shape[1]
        self.make_room(new)
        logits, line = torch.empty(new, pad(self.weights.config.vocab_size)), ids[0].tolist()
        for start in range(0, new, MOST_TOKENS):
            places = range(start, min(new, start + MOST_TOKENS))
            tokens = self._describe([(0, self.seen + place, line[place]) for place in places])
            self._run(tokens, logits[start : places.stop])
        self.seen += new
        return logits[:, : self.weights.config.vocab_size]

    def make_room(self, new: int) -> None:
        """Room for so many new tokens."""
        self.workspace.make_room(self.seen + new)
        self.turns.reach(self.seen + new)

    def _cut(self, ids: list[list[int]]) -> Iterator[tuple[Records, slice]]:
        """Tokens of one call each, and whose logits the last of them give: the last tokens of all rows come last."""
        tokens: list[tuple[int, int, int]] = []
        for row, line in enumerate(ids):
            first = max(self.padding[row] - self.seen, 0)
            tokens += [(row, self.seen + at, line[at]) for at in range(first, len(line) - 1)]
        before = len(tokens)
        tokens += [(row, self.seen + len(line) - 1, line[-1]) for row, line in enumerate(ids)]
        for start in range(0, len(tokens), MOST_TOKENS):
            stop = min(start + MOST_TOKENS, len(tokens))
            yield self._describe(tokens[start:stop]), slice(max(0, start - before), max(0, stop - before))

    def _describe(self, tokens: list[tuple[int, int, int]]) -> Records:
        """Records of tokens that are given as row, place and id."""
        size, cos, sin = 4 * self.turns.cos.shape[1], self.turns.cos.data_ptr(), self.turns.sin.data_ptr()
        lines = []
        for row, place, token in tokens:
            turn = size * (place - self.padding[row])
            lines.append((token, row, place, self.padding[row], cos + turn, sin + turn))
        return np.array(lines, TOKEN)

    def _run(self, tokens: Records, logits: Float[Tensor, "c n"]) -> None:
        space, count = self.workspace, len(tokens)
        splits = space.count_splits(count, int(tokens["index"].max()) + 1)
        space.point(count, splits, logits)
        weights = self.weights
        arguments = (weights.model, weights.layers, tokens, space.record, splits, count - len(logits))
        with tell_of_compiling():
            WORKERS.run(run_step, arguments, space.counters.reset(), space.threads)

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        self.workspace.reorder(index)
        self.padding = [self.padding[i] for i in index.tolist()]

    def crop(self, length: int) -> None:
        """Go back to when `length` positions had been read."""
        self.seen = length
