"""A Seq2Seq in the middle of writing."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.listen import listen
from regard.models.beam_rows import BeamRows, make_source_mask
from regard.models.seq2seq import EncodedSource, Seq2Seq


class Seq2SeqState(BeamRows):
    """What a Seq2Seq has read and written, one row per text, as `model.begin(source)` gives it.

    >>> import torch
    >>> from regard.models.seq2seq import Seq2SeqConfig
    >>> model = Seq2Seq(Seq2SeqConfig(11, 13, width=8, attention="dot")).eval()
    >>> steps = model.begin(torch.tensor([[5, 6, 2], [7, 2, 0]]))
    >>> steps(torch.tensor([[1], [1]])).shape
    torch.Size([2, 13])
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps.attention().shape
    torch.Size([3, 3])
    """

    def __init__(self, model: Seq2Seq, source: Int[Tensor, "b s"], read: EncodedSource) -> None:
        self.model, self.read, self.state = model, read, read.state
        self.fed: Tensor | None = None  # what the last step found, where the next one is fed it
        super().__init__(source, read.memory)

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        return F.linear(self.hidden(ids), *self.head)

    def hidden(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b m"]:
        """The same before the head."""
        model, read = self.model, self.read
        with listen() as heard:
            hidden, self.state, self.fed = model.decoder(
                ids, model.target_table, read.memory, read.keys, read.context, self.state, self.fed, mask=read.mask
            )
        self.look(heard)
        return hidden[:, -1]

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        self.state = tuple(part[:, index] for part in self.state)
        self.fed = None if self.fed is None else self.fed[index]
        if (taken := self.move(index)) is not None:
            read = self.read
            lengths = None if read.lengths is None else read.lengths[taken]
            self.read = read._replace(
                memory=read.memory[taken],
                keys=None if read.keys is None else read.keys[taken],
                context=read.context[taken],
                lengths=lengths,
                mask=make_source_mask(lengths, read.memory.shape[1]),
            )
