"""Each position on its own: widen, bend, narrow."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.dropout import Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swiglu": F.silu,
    "geglu_tanh": partial(F.gelu, approximate="tanh"),
}
GATED = ("swiglu", "geglu_tanh")  # those with a third matrix, which the bent channels are multiplied by


class FeedForward(nn.Module):
    r"""The same two-layer network at every position; the shape stays.

    "relu": $\max(0, x W_1 + b_1) W_2 + b_2$ (Vaswani et al. 2017, eq. 2). "gelu": the same with the exact
    $x\,\Phi(x)$, "gelu_tanh" with its approximation by tanh, as GPT-2 has it (Hendrycks & Gimpel 2016). "swiglu":
    $(\mathrm{silu}(x W_g) \odot x W_1) W_2$ (Shazeer 2020, eq. 6), a third matrix, so that `hidden` is usually chosen
    2/3 as wide; "geglu_tanh": the same with gelu by tanh, as T5 1.1 has it. `dropout` falls on the hidden
    layer, in training only.

    >>> import torch
    >>> FeedForward(4, 9, activation="swiglu")(torch.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    to_gate: nn.Linear | None

    def __init__(
        self, width: int, hidden: int, *, activation: str = "relu", dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}; choose one of {', '.join(map(repr, ACTIVATIONS))}")
        self.activation = activation
        self.to_hidden = nn.Linear(width, hidden, bias=bias)
        self.to_gate = nn.Linear(width, hidden, bias=bias) if activation in GATED else None
        self.to_out = nn.Linear(hidden, width, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "*b m"]) -> Float[Tensor, "*b m"]:
        bend = ACTIVATIONS[self.activation]
        hidden = self.to_hidden(x)
        hidden = bend(hidden) if self.to_gate is None else bend(self.to_gate(x)) * hidden
        return self.to_out(self.dropout(hidden))

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"
