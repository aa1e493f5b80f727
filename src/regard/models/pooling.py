"""The vectors of the tokens of a text → one vector: their mean, their largest, the first, or what a query looks at."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.mask import padding

POOLINGS = ("mean", "cls", "max")


def must_pool(pooling: str, known: Sequence[str]) -> None:
    """Refuse a way of pooling that a model does not know."""
    if pooling not in known:
        raise ValueError(f"pooling is {pooling!r}; choose one of {', '.join(map(repr, known))}")


def pool_tokens(
    hidden: Float[Tensor, "b t m"], real: Bool[Tensor, "b t"] | None = None, *, pooling: str = "mean"
) -> Float[Tensor, "b m"]:
    r"""One vector for each text: $\sum_t x_t / n$ ("mean"), $\max_t x_t$ in each channel ("max"), or $x_0$ ("cls").

    `real` are the n tokens of each text that are no padding, all unless given (Reimers & Gurevych 2019, §3).

    >>> x = torch.tensor([[[1.0, 5.0], [3.0, 1.0], [9.0, 9.0]]])
    >>> [pool_tokens(x, torch.tensor([[True, True, False]]), pooling=one).tolist() for one in POOLINGS]
    [[[2.0, 3.0]], [[1.0, 5.0]], [[3.0, 5.0]]]
    """
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "max":
        return (hidden if real is None else hidden.masked_fill(~real[..., None], -torch.inf)).amax(1)
    if real is None:
        return hidden.mean(1)
    return hidden.masked_fill(~real[..., None], 0).sum(1) / real.sum(1, keepdim=True)


def mark_tokens(ids: Tensor, lengths: Tensor | Sequence[int]) -> Bool[Tensor, "b t"]:
    """True at the first so many tokens of each row."""
    return torch.arange(ids.shape[1], device=ids.device) < torch.as_tensor(lengths, device=ids.device)[:, None]


class AttentionPooling(nn.Module):
    r"""A learned query looks at the tokens of a text, and takes a share of each (Yang et al. 2016, eqs. 5-7).

    $k_t = \tanh(W x_t + b)$, $w = \mathrm{softmax}(q \cdot k_t)$, and the vector is $\sum_t w_t x_t$: equal weights
    would be the mean. It is computed by `attend`, so that whoever watches the model gets its map: one row.

    >>> pooling = AttentionPooling(8)
    >>> pooling(torch.ones(2, 5, 8), lengths=[5, 3]).shape
    torch.Size([2, 8])
    """

    is_cross_attention = True  # its query is none of the tokens: so a watch names its columns alone

    def __init__(self, width: int) -> None:
        super().__init__()
        self.to_k = nn.Linear(width, width)
        self.query = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew; the first query is 0, so that every token counts the same."""
        nn.init.xavier_uniform_(self.to_k.weight)
        nn.init.zeros_(self.to_k.bias)
        nn.init.zeros_(self.query)

    def forward(
        self, hidden: Float[Tensor, "b t m"], lengths: Tensor | Sequence[int] | None = None
    ) -> Float[Tensor, "b m"]:
        """What the query gathered; `lengths` are the tokens of each row before its padding, all unless given."""
        q = self.query.expand(len(hidden), 1, 1, -1)  # b 1 1 m
        k = torch.tanh(self.to_k(hidden))[:, None]  # b 1 t m
        mask = None if lengths is None else padding(lengths)
        return attend(q, k, hidden[:, None], mask=mask, scale=1.0).mix[:, 0, 0]
