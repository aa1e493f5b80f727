"""A Seq2Seq in the middle of writing."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.attend import Attended
from regard.attention.mask import padding
from regard.layers.listen import listen
from regard.models.seq2seq import Read, Seq2Seq


class Seq2SeqSteps:
    """What a Seq2Seq has read and written, one row per text, as `model.begin(source)` gives it.

    >>> model = Seq2Seq(11, 13, width=8, attention="dot").eval()
    >>> steps = model.begin(torch.tensor([[5, 6, 2], [7, 2, 0]]))
    >>> steps(torch.tensor([[1], [1]])).shape
    torch.Size([2, 13])
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps.attention().shape
    torch.Size([3, 3])
    """

    def __init__(self, model: Seq2Seq, read: Read) -> None:
        self.model, self.read, self.state = model, read, read.state
        self.fed: Tensor | None = None  # what the last step found, where the next one is fed it
        self.rows = torch.arange(read.memory.shape[0], device=read.memory.device)  # the source of each row
        self.looked: Attended | None = None
        self.since: Tensor | None = None  # how the rows were reordered since the last step

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        model, read = self.model, self.read
        with listen() as heard:
            hidden, self.state, self.fed = model.decoder(
                ids, model.target_table, read.memory, read.keys, read.context, self.state, self.fed, mask=read.mask
            )
        self.looked, self.since = heard[-1][1] if heard else None, None
        return F.linear(hidden[:, -1], model.head_weight, model.head_bias)

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        rows = self.rows[index]
        self.state = tuple(part[:, index] for part in self.state)
        self.fed = None if self.fed is None else self.fed[index]
        if not torch.equal(rows, self.rows):  # beams of one sentence have read the same
            read = self.read
            lengths = None if read.lengths is None else read.lengths[index]
            whole = lengths is None or bool((lengths == read.memory.shape[1]).all())
            self.read = read._replace(
                memory=read.memory[index],
                keys=None if read.keys is None else read.keys[index],
                context=read.context[index],
                lengths=lengths,
                mask=None if lengths is None or whole else padding(lengths),
            )
        self.rows = rows
        self.since = index if self.since is None else self.since[index]

    def attention(self) -> Float[Tensor, "b s"] | None:
        """Where the last step looked in the source; None before it, and where the model has no attention."""
        if self.looked is None:
            return None
        weights: Tensor = self.looked.weights[..., -1, :].mean(1)  # b s
        return weights if self.since is None else weights[self.since]
