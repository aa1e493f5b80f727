"""A Captioner in the middle of writing."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.listen import listen
from regard.models.beam_rows import BeamRows
from regard.models.captioner import Captioner, SeenPicture


class CaptionerState(BeamRows):
    """What a Captioner has seen and written, one row per caption, as `model.begin(pictures)` gives it.

    >>> import torch
    >>> from regard.models.captioner_config import CaptionerConfig
    >>> model = CaptionerConfig(8, 12, vocab_size=13, features=(8, 12), strides=(2, 2), width=16).build().eval()
    >>> steps = model.begin(torch.ones(2, 3, 8, 12))
    >>> _ = steps(torch.tensor([[1], [1]]))
    >>> steps.reorder(torch.tensor([0, 0, 1]))
    >>> steps.attention().shape
    torch.Size([3, 6])
    """

    def __init__(self, model: Captioner, pictures: Float[Tensor, "b c y x"], seen: SeenPicture) -> None:
        self.model, self.seen, self.state = model, seen, seen.state
        super().__init__(pictures, seen.memory)

    def __call__(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b n"]:
        """Reads the next tokens of every row; the logits of the token after the last of them."""
        return F.linear(self.hidden(ids), *self.head)

    def hidden(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b m"]:
        """The same before the head."""
        model = self.model
        with listen() as heard:
            steps, self.state = model.decoder(ids, model.embed.weight, self.seen, self.state)
        self.look(heard)
        return steps.hidden[:, -1]

    def reorder(self, index: Int[Tensor, " c"]) -> None:
        """Row i becomes what row index[i] was."""
        self.state = tuple(part[:, index] for part in self.state)
        if (taken := self.move(index)) is not None:
            seen = self.seen
            keys = None if seen.keys is None else seen.keys[taken]
            self.seen = seen._replace(memory=seen.memory[taken], keys=keys, mean=seen.mean[taken])
