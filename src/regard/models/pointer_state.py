"""A PointerGenerator in the middle of writing: each token is read once, and what was copied is remembered."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.mask import Mask
from regard.layers.listen import listen
from regard.models.encoder_decoder import Caches
from regard.models.pointer_generator import PointerGenerator
from regard.models.pointer_mixture import group_tokens, mix_log_probs
from regard.models.translator_state import EncoderDecoderState


class PointerState(EncoderDecoderState):
    """What a `PointerGenerator` has read, written and copied, one row per text, as `model.begin(source)` gives it.

    `attention()` are the copy weights of the last step.

    >>> import torch
    >>> from regard.models.pointer_generator import PointerGeneratorConfig
    >>> model = PointerGeneratorConfig(13, 13, width=8, heads=2, layers=1).build().eval()
    >>> steps = model.begin(torch.tensor([[5, 6, 2], [7, 2, 0]]))
    >>> steps(torch.tensor([[1], [1]])).exp().sum(-1).allclose(torch.ones(2))
    True
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps.attention().shape, steps.covered.shape
    (torch.Size([3, 3]), torch.Size([3, 3]))
    """

    def __init__(
        self,
        model: PointerGenerator,
        source: Int[Tensor, "b s"],
        memory: Float[Tensor, "b s m"],
        caches: Caches,
        mask: Mask | None,
        lengths: Int[Tensor, " b"] | None,
    ) -> None:
        assert model.pointer is not None
        super().__init__(model, source, memory, caches, mask, lengths)
        self.pointer = model.pointer
        self.keys, self.group = self.pointer.project(memory), group_tokens(source)
        self.covered: Tensor | None = None  # b s: how much of each position was copied so far

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the log-probabilities of the token after the last of them."""
        with listen() as heard:
            hidden = self.decode(ids)
            pointed = self.pointer(hidden, self.memory, keys=self.keys, mask=self.mask, covered=self.covered)
        self.look(heard)
        if pointed.coverage is not None:
            self.covered = pointed.coverage[:, -1] + pointed.copy[:, -1]
        logits = F.linear(hidden[:, -1:], self.model.head_weight)
        source, group = self.source[self.rows], self.group[self.rows]
        return mix_log_probs(logits, pointed.gate[:, -1:], pointed.copy[:, -1:], source, group)[:, 0]

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        super().reorder(index)
        self.covered = None if self.covered is None else self.covered[index]

    def take(self, entries: Int[Tensor, " e"]) -> None:
        super().take(entries)
        self.keys = self.keys[entries]
