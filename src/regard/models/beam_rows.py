"""The rows of a model that writes: which source each belongs to, and where its last step looked."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attended
from regard.attention.mask import Mask, padding
from regard.layers.listen import Heard


class BeamRows:
    """What the `DecoderState` of every model with a source remembers of their rows, and the head of the model.

    With `shared`, rows that stand side by side and translate the same source need it once: beams of a sentence.
    """

    model: Any

    def __init__(self, source: Tensor, memory: Float[Tensor, "b s m"], *, shared: bool = False) -> None:
        self.source, self.shared = source, shared
        self.rows = torch.arange(memory.shape[0], device=memory.device)  # the source that each row translates
        self.held = self.rows  # the source of each entry of the memory
        self.looked: Attended | None = None  # what the last layer saw of the source in the last step
        self.looking = 0  # how many rows there were then
        self.since: Tensor | None = None  # how the rows were reordered since then

    @property
    def head(self) -> tuple[Tensor, Tensor | None]:
        """What makes the logits: a weight, and a bias where there is one."""
        return self.model.head_weight, self.model.head_bias

    @property
    def repeatable(self) -> bool:
        """Whether a second pass computes what the first one did: nothing is dropped."""
        return not self.model.training

    def again(self, written: Sequence[Sequence[int]], begin: int) -> None:
        """One pass over the sources, and BEGIN and what was written for each, padded on the right."""
        rows = [torch.tensor([begin, *ids], device=self.source.device) for ids in written]
        self.model(self.source, nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.model.config.pad))

    def look(self, heard: Heard) -> None:
        """Remember where a step looked."""
        self.looked, self.since = heard[-1][1] if heard else None, None
        self.looking = len(self.rows)

    def move(self, index: Int[Tensor, " c"]) -> Int[Tensor, " e"] | None:
        """Row i becomes what row index[i] was; which entries of the memory are needed now, None for just these.

        Beams of one sentence change places among each other, and what they read is the same.
        """
        rows, before = self.rows[index], self.rows
        self.since = index if self.since is None else self.since[index]
        if torch.equal(rows, before):
            return None
        self.rows = rows
        wanted = deduplicate(self.rows) if self.shared else self.rows
        if torch.equal(wanted, self.held):
            return None
        places = self.held.new_empty(int(self.held.max()) + 1)
        places[self.held] = torch.arange(len(self.held), device=self.held.device)
        self.held = wanted
        return places[wanted]

    def attention(self) -> Float[Tensor, "b s"] | None:
        """Where the last step looked in the source: the mean over the heads of the last layer; None where nowhere."""
        if self.looked is None:
            return None
        weights = self.looked.weights
        tokens = weights.shape[0] * weights.shape[-2] // self.looking  # of a row; the rows of an entry ask as one
        last = weights.rows(slice(tokens - 1, None, tokens)).mean(1).flatten(0, 1)  # b s
        return last if self.since is None else last[self.since]


def deduplicate(rows: Int[Tensor, " b"]) -> Int[Tensor, " e"]:
    """Each source once, where all have as many rows, side by side; else the source of every row.

    >>> deduplicate(torch.tensor([4, 4, 7, 7])), deduplicate(torch.tensor([4, 4, 7]))
    (tensor([4, 7]), tensor([4, 4, 7]))
    """
    different, counts = torch.unique_consecutive(rows, return_counts=True)
    return different if bool((counts == counts[:1]).all()) else rows


def make_source_mask(lengths: Int[Tensor, " b"] | None, size: int) -> Mask | None:
    """The mask of sources of these lengths; none where no row is padded any more."""
    return None if lengths is None or bool((lengths == size).all()) else padding(lengths)
