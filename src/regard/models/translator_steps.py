"""A Translator in the middle of writing: each token is read once."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.attend import Attended, Maskable
from regard.attention.mask import padding
from regard.layers.listen import listen
from regard.models.translator import Caches, Translator


class TranslatorSteps:
    """What a Translator has read and written, one row per text, as `model.begin(source)` gives it.

    >>> model = Translator(11, 13, width=8, heads=2, layers=1).eval()
    >>> steps = model.begin(torch.tensor([[5, 6, 2], [7, 2, 0]]))
    >>> steps(torch.tensor([[1], [1]])).shape
    torch.Size([2, 13])
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps.attention().shape
    torch.Size([3, 3])
    """

    def __init__(
        self,
        model: Translator,
        memory: Float[Tensor, "b s m"],
        caches: Caches,
        mask: Maskable | None,
        lengths: Int[Tensor, " b"] | None,
    ) -> None:
        self.model, self.memory, self.caches, self.mask, self.lengths = model, memory, caches, mask, lengths
        self.rows = torch.arange(memory.shape[0], device=memory.device)  # the source that each row translates
        self.looked: Attended | None = None  # what the last layer saw of the source in the last step
        self.since: Tensor | None = None  # how the rows were reordered since then

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        model = self.model
        with listen() as heard:
            hidden = model.decoder(ids, model.target_table, self.memory, memory_mask=self.mask, cache=self.caches)
        self.looked, self.since = heard[-1][1] if heard else None, None
        return F.linear(hidden[:, -1], model.head_weight)

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        rows = self.rows[index]
        # Beams of one sentence change places among each other, and what they read is the same.
        moved = not torch.equal(rows, self.rows)
        for own, others in self.caches:
            own.reorder(index)
            if moved:
                others.reorder(index)
        if moved and self.lengths is not None:
            self.lengths = self.lengths[index]
            whole = bool((self.lengths == self.memory.shape[1]).all())
            self.mask = None if whole else padding(self.lengths)
        self.rows = rows
        self.since = index if self.since is None else self.since[index]

    def attention(self) -> Float[Tensor, "b s"] | None:
        """Where the last step looked in the source: the mean over the heads of the last layer; None before it."""
        if self.looked is None:
            return None
        weights: Tensor = self.looked.weights[..., -1, :].mean(1)  # b s
        return weights if self.since is None else weights[self.since]
