"""Small models to watch, written as other people write them."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sdpa = F.scaled_dot_product_attention  # bound at import, as many libraries do
WAYS = ["sdpa", "by_hand", "by_bmm", "by_einsum"]


def x_of(b: int = 2, n: int = 7, width: int = 24, seed: int = 1) -> Tensor:
    """What goes into them, the same in every process."""
    return torch.randn(b, n, width, generator=torch.Generator().manual_seed(seed))


def seeded(model: nn.Module, seed: int = 0) -> nn.Module:
    """The same weights in every process."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model


class Attention(nn.Module):
    """Self- or cross-attention over one of the ways to compute it."""

    def __init__(
        self, width: int = 24, heads: int = 3, way: str = "sdpa", kv_heads: int | None = None, **how: Any
    ) -> None:
        super().__init__()
        self.num_heads, self.kv_heads, self.way, self.how = heads, kv_heads or heads, way, how
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width * self.kv_heads // heads)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        source = x if context is None else context
        q = self.q(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        k, v = self.kv(source).unflatten(-1, (2, self.kv_heads, -1)).permute(2, 0, 3, 1, 4)
        mixed: Tensor = getattr(self, self.way)(q, k, v, mask)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out

    def sdpa(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return sdpa(q, k, v, mask, enable_gqa=self.kv_heads != self.num_heads, **self.how)

    def by_hand(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        weights = self.weights(q, k, mask)
        return F.dropout(weights, self.how.get("dropout", 0.0), self.training) @ v

    def by_bmm(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        weights = self.weights(q, k, mask)
        return torch.bmm(weights.flatten(0, 1), v.flatten(0, 1)).unflatten(0, weights.shape[:2])

    def by_einsum(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return torch.einsum("b h i j, b h j d -> b h i d", self.weights(q, k, mask), v)

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1)


class Stack(nn.Module):
    """A few attention layers with residuals."""

    def __init__(self, depth: int = 2, **how: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention(**how) for _ in range(depth))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, mask=mask)
        return x


def expected(layer: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights of one layer in float64, straight from its projections."""
    q = layer.q(x).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)
    k, _ = layer.kv(x).unflatten(-1, (2, layer.kv_heads, -1)).permute(2, 0, 3, 1, 4)
    k = k.repeat_interleave(layer.num_heads // layer.kv_heads, 1)
    scores = q.double() @ k.double().transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1)
