"""The closeness of query and key, as kernel regression measures it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Gaussian(nn.Module):
    r"""The exponent of a Gaussian kernel: $-\lVert q - k\rVert^2 / (2\,\mathrm{width}^2)$.

    Softmax over it is Nadaraya-Watson regression (1964). `width` is one positive number: a float that stays,
    a float that is learned (`learned=True`), or a tensor or parameter of yours. Distances come from the
    differences themselves, so two points far from the origin and close to each other lose nothing; one block
    of pairs makes rows × columns × d numbers.

    >>> import torch
    >>> Gaussian(width=2.0)(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0], [1.0, 5.0]]))
    tensor([[-0., -2.]])
    """

    is_dot = False
    width: float | Tensor

    def __init__(self, width: float | Tensor = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        if isinstance(width, Tensor) and width.numel() != 1:
            raise ValueError(f"width of shape {tuple(width.shape)} is not one number; give a single width")
        number = float(width.detach() if isinstance(width, Tensor) else width)
        if not number > 0:
            raise ValueError(f"width {number} is no width; choose one above 0, such as 1.0")
        if learned and not isinstance(width, nn.Parameter):
            self.width = nn.Parameter(torch.tensor(number))
        elif isinstance(width, nn.Parameter) or not isinstance(width, Tensor):
            self.width = width
        else:
            self.register_buffer("width", width)

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"]
    ) -> tuple[Float[Tensor, "*_b q d"], Float[Tensor, "*_c k d"]]:
        """Both sides as they came."""
        return q, k

    def compare(self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"]) -> Float[Tensor, "*_e q k"]:
        """The score of every query with every key."""
        return gaussian_scores(q, k, self.width)

    def scale(self, width: int) -> float:
        """1: the kernel's own width is the scale."""
        return 1.0

    def forward(self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"]) -> Float[Tensor, "*_e q k"]:
        """Prepare and compare in one call."""
        return self.compare(*self.prepare(q, k))

    def extra_repr(self) -> str:
        return "learned" if isinstance(self.width, nn.Parameter) else f"width={self.width}"


def gaussian_scores(
    q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k d"], width: float | Float[Tensor, "..."] = 1.0
) -> Float[Tensor, "*_e q k"]:
    r"""$-\lVert q - k\rVert^2 / (2\,\mathrm{width}^2)$ for every pair.

    >>> import torch
    >>> gaussian_scores(torch.tensor([[0.0]]), torch.tensor([[1.0], [2.0]]))
    tensor([[-0.5000, -2.0000]])
    """
    squared = (q[..., :, None, :] - k[..., None, :, :]).square().sum(-1)  # *b q k
    return squared / width / width / -2  # divided twice: the square of a small width may be 0
