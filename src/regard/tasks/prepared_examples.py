"""A task whose examples are sequences of ids: their batches, and shares of one for several processes."""

from typing import Any

import numpy as np

from regard.data.batches import batches, share
from regard.data.examples import Examples


class PreparedExamples:
    """What all prepared tasks have in common that learn from `Examples`; `given` has `batch_tokens` and `seed`."""

    def __init__(self, settings: Any, train: Examples, *, left_out: int = 0) -> None:
        self.given, self.train = settings, train
        self.examples, self.left_out = len(train), left_out + train.dropped

    # Examples that are read otherwise in each epoch have the numbers epoch · examples + example.

    def read_in(self, epoch: int) -> Any:
        """The examples as they are read in one epoch; the same in all, unless a task says otherwise."""
        return self.train

    def find(self, indices: np.ndarray) -> tuple[Any, np.ndarray]:
        """The examples as they are read in the epoch of these numbers, and which of them these are."""
        if not len(indices):
            return self.train, indices
        epoch = int(indices[0]) // len(self.train)
        return self.read_in(epoch), indices - epoch * len(self.train)

    def batches(self, epoch: int) -> list[np.ndarray]:
        """The updates of one epoch, rows of about equal length together."""
        settings, examples = self.given, self.read_in(epoch)
        made = batches(examples.lengths, tokens=settings.batch_tokens, seed=settings.seed, epoch=epoch)
        return made if examples is self.train else [epoch * len(examples) + rows for rows in made]

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        """One update in `count` parts of about equally many tokens."""
        if count == 1:
            return [indices]
        examples, rows = self.find(indices)
        lengths = np.add.reduce(list(examples.lengths.values()))
        return [indices[share(np.arange(len(rows)), rank, count, lengths[rows])] for rank in range(count)]

    def weight(self, indices: np.ndarray) -> int:
        """How many examples there are: each counts once, unless a task says otherwise."""
        return len(indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        """The length of what is read, which is the first sequence of an example."""
        examples, rows = self.find(indices)
        lengths: np.ndarray = next(iter(examples.lengths.values()))
        return int(lengths[rows].sum())
