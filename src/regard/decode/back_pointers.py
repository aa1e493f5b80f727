"""What every beam said, as back-pointers: nothing is copied before the end."""

import torch
from torch import Tensor


class BackPointers:
    """One token and one parent per row, beam and step. Rows that are gone take no room."""

    def __init__(self) -> None:
        self.steps: list[tuple[Tensor, Tensor, Tensor]] = []

    def append(self, rows: Tensor, tokens: Tensor, parents: Tensor) -> None:
        """In this step beam j of row rows[i] says tokens[i, j], and goes on from what beam parents[i, j] was."""
        self.steps.append((rows, tokens, parents))

    def trace(self, slots: Tensor, lengths: Tensor) -> list[list[list[int]]]:
        """The texts of lengths[i, j] tokens that beam slots[i, j] of row i had written by then; both (rows, c)."""
        whole = slots.new_zeros(*slots.shape, len(self.steps))
        standing = slots.new_zeros(len(slots))
        for t in range(len(self.steps) - 1, -1, -1):
            alive, tokens, parents = self.steps[t]
            standing[alive] = torch.arange(len(alive), device=slots.device)
            # A text that was not so long looks at any other's token, keeps its slot, and is cut below.
            whole[:, :, t] = tokens[standing[:, None], slots]
            slots = parents[standing[:, None], slots].where(lengths > t, slots)
        return [
            [text[:length] for text, length in zip(texts, row)] for texts, row in zip(whole.tolist(), lengths.tolist())
        ]
