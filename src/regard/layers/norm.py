"""What stands around a sublayer: its input is added back, and the sum is kept in range."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.dropout import Dropout

ORDERS = ("pre", "post")
NORMS = ("layer", "rms")


class Residual(nn.Module):
    r"""A sublayer f with its input added back and a norm before or after it.

    "post": $\mathrm{norm}(x + \mathrm{dropout}(f(x)))$ (Vaswani et al. 2017, §3.1). "pre":
    $x + \mathrm{dropout}(f(\mathrm{norm}(x)))$ (Xiong et al. 2020, figure 1b), which trains without warm-up and
    needs one more norm after the last block. `norm` is "layer" (Ba et al. 2016) or "rms" (Zhang & Sennrich 2019).
    The sublayer comes with each call, so that it can be given masks and caches; it must keep the shape.
    `layer_scale` is where a learned factor for each channel of what it gives starts (Touvron et al. 2021b, §2).

    >>> import torch
    >>> x = torch.tensor([[1.0, 3.0]])
    >>> Residual(2, order="post")(x, lambda y: 0 * y)
    tensor([[-1.0000,  1.0000]], grad_fn=<NativeLayerNormBackward0>)
    >>> Residual(2, order="pre")(x, lambda y: 0 * y)
    tensor([[1., 3.]], grad_fn=<AddBackward0>)
    """

    scale: nn.Parameter | None

    def __init__(
        self,
        width: int,
        order: str = "post",
        norm: str = "layer",
        dropout: float = 0.0,
        *,
        bias: bool = True,
        eps: float | None = None,
        layer_scale: float | None = None,
    ) -> None:
        super().__init__()
        if order not in ORDERS:
            raise ValueError(f"order is {order!r}; choose one of {', '.join(map(repr, ORDERS))}")
        self.order = order
        self.norm = make_norm(norm, width, bias=bias, eps=eps)
        self.dropout = Dropout(dropout)
        self.register_parameter(
            "scale", None if layer_scale is None else nn.Parameter(torch.full((width,), layer_scale))
        )

    def forward(self, x: Float[Tensor, "*b m"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "*b m"]:
        if self.order == "pre":
            return x + self.dropout(self._scale(sublayer(self.norm(x))))
        return self.norm(x + self.dropout(self._scale(sublayer(x))))

    def _scale(self, x: Float[Tensor, "*b m"]) -> Float[Tensor, "*b m"]:
        return x if self.scale is None else x * self.scale

    def extra_repr(self) -> str:
        return f"order={self.order!r}"


def make_norm(name: str, width: int, *, bias: bool = True, eps: float | None = None) -> nn.Module:
    """A norm over the last axis; an RMS norm has no bias. `eps` is 1e-5, of an RMS norm 1e-6, unless given."""
    if name == "layer":
        return nn.LayerNorm(width, eps=1e-5 if eps is None else eps, bias=bias)
    if name == "rms":
        return nn.RMSNorm(width, eps=1e-6 if eps is None else eps)
    raise ValueError(f"norm is {name!r}; choose one of {', '.join(map(repr, NORMS))}")
