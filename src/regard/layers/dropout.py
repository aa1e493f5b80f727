"""Dropout whose random numbers cost little: on a processor torch draws them one by one, which is most of its time."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.eager import readable

STEPS = 1 << 16  # sixteen random bits decide over one number


class Dropout(nn.Dropout):
    """Sets a share `p` of x to 0 and raises the others by 1 / (1 − p), in training only (Srivastava et al. 2014).

    Four numbers are decided by one draw of 64 bits, so `p` counts to the nearest 1/65536. Random numbers come from
    torch's own generator. Off the processor, compiled or transformed it is torch's dropout.

    >>> import torch
    >>> Dropout(0.25)(torch.ones(1000)).unique()
    tensor([0.0000, 1.3333])
    """

    def forward(self, x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        if not self.training or not self.p:
            return x
        dropped = round(self.p * STEPS)
        if self.inplace or not 0 < dropped < STEPS or not readable(x):
            return F.dropout(x, self.p, True, self.inplace)
        return x * keep(x, dropped)


@torch.no_grad()
def keep(x: Float[Tensor, "*b"], dropped: int) -> Float[Tensor, "*b"]:
    """What x is multiplied by: 0 in `dropped` of 65536 cases."""
    count = x.numel()
    drawn = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    bits = drawn.view(torch.int16)[:count]
    # Written as numbers at once: a product with booleans takes several times as long.
    kept = torch.ge(bits, dropped - STEPS // 2, out=torch.empty(count, dtype=x.dtype))
    return kept.mul_(STEPS / (STEPS - dropped)).view(x.shape)
