"""An encoder–decoder in the middle of writing: each token is read once."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.mask import Mask
from regard.layers.listen import listen
from regard.models.beam_rows import BeamRows, make_source_mask
from regard.models.encoder_decoder import Caches, EncoderDecoder


class EncoderDecoderState(BeamRows):
    """What the states of all encoder–decoders have in common: what was read, and the caches of their decoders."""

    def __init__(
        self,
        model: EncoderDecoder,
        source: Int[Tensor, "b s"],
        memory: Float[Tensor, "b s m"],
        caches: Caches,
        mask: Mask | None,
        lengths: Int[Tensor, " b"] | None,
    ) -> None:
        self.model, self.memory, self.caches, self.mask, self.lengths = model, memory, caches, mask, lengths
        super().__init__(source, memory, shared=True)

    def decode(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t m"]:
        """Reads the next tokens of every row; what stands before the head, after each of them."""
        return self.model.decode_hidden(ids, self.memory, memory_mask=self.mask, cache=self.caches)

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        taken = self.move(index)
        for own, others in self.caches:
            own.reorder(index)
            if taken is not None:
                others.reorder(taken)
        if taken is not None:
            self.take(taken)

    def take(self, entries: Int[Tensor, " e"]) -> None:
        """Hold these entries of the memory, in this order."""
        self.memory = self.memory[entries]
        if self.lengths is not None:
            self.lengths = self.lengths[entries]
            self.mask = make_source_mask(self.lengths, self.memory.shape[1])


class TranslatorState(EncoderDecoderState):
    """What a `Translator` or `T5` has read and written, one row per text, as `model.begin(source)` gives it.

    >>> import torch
    >>> from regard.models import Translator, TranslatorConfig
    >>> model = Translator(TranslatorConfig(11, 13, width=8, heads=2, layers=1)).eval()
    >>> steps = model.begin(torch.tensor([[5, 6, 2], [7, 2, 0]]))
    >>> steps(torch.tensor([[1], [1]])).shape
    torch.Size([2, 13])
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps.attention().shape
    torch.Size([3, 3])
    """

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        return F.linear(self.hidden(ids), *self.head)

    def hidden(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b m"]:
        """The same before the head."""
        with listen() as heard:
            hidden = self.decode(ids)
        self.look(heard)
        return hidden[:, -1]
