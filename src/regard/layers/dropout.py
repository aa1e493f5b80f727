"""Dropout whose random numbers cost little: on a processor torch draws them one by one, which is most of its time."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.weigh.dropout import STEPS, draw_kept
from regard.eager import readable


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
        return x * draw_kept(x.shape, self.p, dtype=x.dtype, device=x.device)
