"""Batches of so many examples each, in an order that is a function of seed and epoch: for pictures, all of one size."""

from typing import Any

import numpy as np


class ShuffledExamples:
    """What prepared tasks have in common whose batches are so many examples; `given` has `batch_size` and `seed`."""

    given: Any
    examples: int

    def batches(self, epoch: int) -> list[np.ndarray]:
        """The updates of one epoch; example n of epoch e has the number e · examples + n."""
        order = np.random.default_rng((self.given.seed, epoch)).permutation(self.examples)
        cuts = range(self.given.batch_size, self.examples, self.given.batch_size)
        return np.split(epoch * self.examples + order, cuts)

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        return np.array_split(indices, count)
