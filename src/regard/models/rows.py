"""The rows of a model that writes: which source each belongs to, and where its last step looked."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.attend import Attended
from regard.attention.mask import Mask, padding
from regard.layers.listen import Heard


class Rows:
    """What the `Steps` of every model here remember of their rows."""

    def __init__(self, memory: Float[Tensor, "b s m"]) -> None:
        self.rows = torch.arange(memory.shape[0], device=memory.device)  # the source that each row translates
        self.looked: Attended | None = None  # what the last layer saw of the source in the last step
        self.since: Tensor | None = None  # how the rows were reordered since then

    def look(self, heard: Heard) -> None:
        """Remember where a step looked."""
        self.looked, self.since = heard[-1][1] if heard else None, None

    def move(self, index: Int[Tensor, " c"]) -> bool:
        """Row i becomes what row index[i] was; whether some row now has another source.

        Beams of one sentence change places among each other, and what they read is the same.
        """
        rows = self.rows[index]
        moved = not torch.equal(rows, self.rows)
        self.rows = rows
        self.since = index if self.since is None else self.since[index]
        return moved

    def attention(self) -> Float[Tensor, "b s"] | None:
        """Where the last step looked in the source: the mean over the heads of the last layer; None where nowhere."""
        if self.looked is None:
            return None
        weights: Tensor = self.looked.weights[..., -1, :].mean(1)  # b s
        return weights if self.since is None else weights[self.since]


def seen_of(lengths: Int[Tensor, " b"] | None, size: int) -> Mask | None:
    """The mask of sources of these lengths; none where no row is padded any more."""
    return None if lengths is None or bool((lengths == size).all()) else padding(lengths)
