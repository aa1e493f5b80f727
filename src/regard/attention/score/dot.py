"""The product of query and key, bare or divided by √d."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Dot:
    r"""How far a query points along a key: $q^\top k$ (Luong et al. 2015, §3.1, "dot").

    Channels may be none at all; every score is 0 then.

    >>> import torch
    >>> x = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    >>> Dot().compare(x[:1], x)
    tensor([[2., 0., 1.]])
    """

    is_dot = True

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"]
    ) -> tuple[Float[Tensor, "*_b q d"], Float[Tensor, "*_c k d"]]:
        """Both sides as they came."""
        return q, k

    def compare(self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"]) -> Float[Tensor, "*_e q k"]:
        """The product of every query with every key."""
        return q @ k.mT  # *b q k

    def scale(self, width: int) -> float:
        """1: the product stays as it is."""
        return 1.0


@dataclass(frozen=True)
class ScaledDot(Dot):
    r"""The dot product divided by $\sqrt d$ (Vaswani et al. 2017, eq. 1).

    The sum of d products of independent unit numbers has variance d; divided by √d it has variance 1, and
    softmax keeps a gradient whatever the width. Without channels (d = 0) there is nothing to divide.

    >>> ScaledDot().scale(64)
    0.125
    """

    def scale(self, width: int) -> float:
        """1/√width."""
        return 1.0 / math.sqrt(width) if width else 1.0
