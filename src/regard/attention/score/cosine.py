"""The angle between query and key, whatever their lengths."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.score.dot import Dot


@dataclass(frozen=True)
class Cosine(Dot):
    r"""The cosine of the angle between query and key: $q^\top k / (\lVert q\rVert \lVert k\rVert)$.

    Graves et al. 2014, eq. 6. A vector shorter than `eps` is divided by `eps` instead of its length, so a
    zero vector scores 0 with every key and has finite gradients of every order. Scores lie within ±1, and
    softmax over them is nearly even: give `attend` a larger `scale`.

    >>> import torch
    >>> x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    >>> cosine = Cosine()
    >>> cosine.compare(*cosine.prepare(x, torch.tensor([[1.0, 0.0], [0.0, 2.0]])))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """

    eps: float = 1e-6

    def __post_init__(self) -> None:
        if not self.eps > 0:
            raise ValueError(f"eps {self.eps} cannot stand in for a length; choose one above 0, such as 1e-6")

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"]
    ) -> tuple[Float[Tensor, "*_b q d"], Float[Tensor, "*_c k d"]]:
        """Both sides at length one."""
        return normalise_length(q, self.eps), normalise_length(k, self.eps)


def normalise_length(x: Float[Tensor, "*b d"], eps: float) -> Float[Tensor, "*b d"]:
    """Every vector divided by its length, or by `eps` where it is shorter."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # squares overflow in float16
    # The square is clamped, not the length: a square root has no slope at zero.
    length = wide.square().sum(-1, keepdim=True).clamp(min=eps**2).sqrt()  # *b 1
    return (wide / length).to(x.dtype)
