"""Attention whose batch and heads share an axis, or take more than one, in the ways that people write it.

Each module keeps what it truly attended to, as (b, h, q, k), and can silence a head by itself: the oracle of the tests.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import Tensor, nn

WIDTH = 24


class Oracle(nn.Module):
    """Four projections, sharpened so that no map is near uniform; `silent` is a head whose output is to be 0."""

    def __init__(self, heads: int = 4, key_heads: int | None = None) -> None:
        super().__init__()
        self.num_heads, self.key_heads = heads, key_heads or heads
        self.d = WIDTH // heads
        generator = torch.Generator().manual_seed(heads)
        self.q, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.k, self.v = (nn.Linear(WIDTH, self.d * self.key_heads) for _ in range(2))
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                sharp = 0.5 if name[0] in "qk" else 0.3
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * sharp)
        self.kept: tuple[Tensor, ...] = ()
        self.silent: int | None = None

    def keep(self, *kept: Tensor) -> None:
        """The weights as (b, h, q, k), or q and k as (b, h, n, d) where a kernel makes them."""
        self.kept = tuple(x.detach().clone() for x in kept)

    @property
    def true(self) -> Tensor:
        if len(self.kept) == 1:
            return self.kept[0]
        q, k = self.kept
        return (q @ k.mT / math.sqrt(self.d)).softmax(-1)

    def silence(self, mix: Tensor) -> Tensor:
        """(b, h, q, e) without the silent head."""
        if self.silent is None:
            return mix
        kept = torch.ones(mix.shape[1], 1, 1)
        kept[self.silent] = 0
        return mix * kept


class CatHeads(Oracle):
    """Set Transformer's MAB: heads are cut from the channels and put below each other, head-major."""

    def forward(self, x: Tensor) -> Tensor:
        b, h = x.shape[0], self.num_heads
        Q = self.q(x)
        K, V = self.k(x), self.v(x)
        Q_ = torch.cat(Q.split(self.d, 2), 0)
        K_ = torch.cat(K.split(self.d, 2), 0)
        V_ = torch.cat(V.split(self.d, 2), 0)
        A = torch.softmax(Q_.bmm(K_.transpose(1, 2)) / math.sqrt(self.d), 2)
        self.keep(A.unflatten(0, (h, b)).transpose(0, 1))
        mix = A.bmm(V_)
        mix = self.silence(mix.unflatten(0, (h, b)).transpose(0, 1)).transpose(0, 1).flatten(0, 1)
        return self.out(torch.cat(mix.split(b, 0), 2))


class Rearranged(Oracle):
    """einops, in either order; by hand or by torch's kernel."""

    def __init__(self, order: str, how: str = "matmul", heads: int = 4) -> None:
        super().__init__(heads)
        self.order, self.how = order, how

    def forward(self, x: Tensor) -> Tensor:
        h, sizes = self.num_heads, {"h": self.num_heads, "b": x.shape[0]}
        q, k, v = (rearrange(t, f"b n (h d) -> {self.order} n d", h=h) for t in (self.q(x), self.k(x), self.v(x)))
        if self.how == "kernel":
            self.keep(*(rearrange(t, f"{self.order} n d -> b h n d", **sizes) for t in (q, k)))
            mix = F.scaled_dot_product_attention(q, k, v)
        else:
            weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
            self.keep(rearrange(weights, f"{self.order} q k -> b h q k", **sizes))
            mix = torch.bmm(weights, v) if self.how == "bmm" else weights @ v
        mix = self.silence(rearrange(mix, f"{self.order} n d -> b h n d", **sizes))
        return self.out(rearrange(mix, "b h n d -> b n (h d)"))


class Viewed(Oracle):
    """transpose, contiguous, view: as older models of `transformers` write it, batch-major."""

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape

        def shape(t: Tensor) -> Tensor:
            return t.view(b, n, self.num_heads, self.d).transpose(1, 2).contiguous().view(b * self.num_heads, n, self.d)

        weights = torch.bmm(shape(self.q(x)) / math.sqrt(self.d), shape(self.k(x)).transpose(1, 2)).softmax(-1)
        self.keep(weights.view(b, self.num_heads, n, n))
        mix = self.silence(torch.bmm(weights, shape(self.v(x))).view(b, self.num_heads, n, self.d))
        return self.out(mix.transpose(1, 2).reshape(b, n, WIDTH))


class Inner(nn.Module):
    """A module of its own for the arithmetic, which sees merged axes only."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        weights = (torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])).softmax(-1)
        return torch.bmm(weights, v), weights


class InnerModule(Oracle):
    """attention-is-all-you-need-pytorch: heads first, and the arithmetic one module further in."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__(heads)
        self.attention = Inner()

    def forward(self, q: Tensor) -> Tensor:
        b, n, h = q.shape[0], q.shape[1], self.num_heads
        k, v = q, q
        q = self.q(q).view(b, n, h, self.d)
        k = self.k(k).view(b, n, h, self.d)
        v = self.v(v).view(b, n, h, self.d)
        q, k, v = (t.permute(2, 0, 1, 3).contiguous().view(-1, n, self.d) for t in (q, k, v))
        mix, weights = self.attention(q, k, v)
        self.keep(weights.view(h, b, n, n).transpose(0, 1))
        mix = self.silence(mix.view(h, b, n, self.d).transpose(0, 1))
        return self.out(mix.transpose(1, 2).flatten(2))


class GroupedFive(Oracle):
    """Grouped queries on an axis of their own: (b, kv, g, n, d)."""

    def __init__(self, how: str, heads: int = 4, key_heads: int = 2) -> None:
        super().__init__(heads, key_heads)
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        g = self.num_heads // self.key_heads
        q = rearrange(self.q(x), "b n (kv g d) -> b kv g n d", kv=self.key_heads, g=g)
        k, v = (rearrange(t, "b n (kv d) -> b kv 1 n d", kv=self.key_heads) for t in (self.k(x), self.v(x)))
        if "expanded" in self.how:
            k, v = k.expand(-1, -1, g, -1, -1), v.expand(-1, -1, g, -1, -1)
        if "kernel" in self.how:
            self.keep(q.flatten(1, 2), k.expand(-1, -1, g, -1, -1).flatten(1, 2))
            mix = F.scaled_dot_product_attention(q, k, v)
        else:
            weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
            self.keep(weights.flatten(1, 2))
            mix = weights @ v
        mix = self.silence(mix.flatten(1, 2))
        return self.out(rearrange(mix, "b h n d -> b n (h d)"))


class Windows(Oracle):
    """hiera, nest: windows stand between heads and positions, (b, h, w, n, d)."""

    def __init__(self, how: str, heads: int = 4, windows: int = 2) -> None:
        super().__init__(heads)
        self.how, self.windows = how, windows

    def forward(self, x: Tensor) -> Tensor:
        sizes = {"h": self.num_heads, "w": self.windows}
        q, k, v = (rearrange(t, "b (w n) (h d) -> b h w n d", **sizes) for t in (self.q(x), self.k(x), self.v(x)))
        if self.how == "kernel":
            self.keep(*(rearrange(t, "b h w n d -> (b w) h n d") for t in (q, k)))
            mix = F.scaled_dot_product_attention(q, k, v)
        else:
            weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
            self.keep(rearrange(weights, "b h w q k -> (b w) h q k"))
            mix = weights @ v
        mix = self.silence(mix.transpose(1, 2).flatten(0, 1)).unflatten(0, (-1, self.windows)).transpose(1, 2)
        return self.out(rearrange(mix, "b h w n d -> b (w n) (h d)"))


class LocalWindows(Oracle):
    """local-attention: batch and heads merged, windows beside them, (b · h, w, n, d)."""

    def forward(self, x: Tensor) -> Tensor:
        sizes = {"h": self.num_heads, "w": 2}
        q, k, v = (rearrange(t, "b (w n) (h d) -> (b h) w n d", **sizes) for t in (self.q(x), self.k(x), self.v(x)))
        weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
        self.keep(rearrange(weights, "(b h) w q k -> (b w) h q k", h=self.num_heads))
        mix = self.silence(rearrange(weights @ v, "(b h) w n d -> (b w) h n d", h=self.num_heads))
        return self.out(rearrange(mix, "(b w) h n d -> b (w n) (h d)", w=2))


class Local(nn.Module):
    """The module of local-attention: it merges what it is given under the same names, and knows of no heads."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shape, d = q.shape, q.shape[-1]
        (q, k, v) = (rearrange(t, "b h (w n) d -> (b h) w n d", w=2) for t in (q, k, v))
        weights = (q @ k.mT / math.sqrt(d)).softmax(-1)
        return (weights @ v).reshape(shape), weights


class LocalModule(Oracle):
    """The same windows in a module of their own."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__(heads)
        self.local = Local()

    def forward(self, x: Tensor) -> Tensor:
        parts = (rearrange(t, "b n (h d) -> b h n d", h=self.num_heads) for t in (self.q(x), self.k(x), self.v(x)))
        mix, weights = self.local(*parts)
        self.keep(rearrange(weights, "(b h) w q k -> (b w) h q k", h=self.num_heads))
        return self.out(rearrange(self.silence(mix), "b h n d -> b n (h d)"))


class HeadsFirst(Oracle):
    """Four axes with heads before the batch: (h, b, n, d)."""

    def __init__(self, how: str, heads: int = 4) -> None:
        super().__init__(heads)
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (rearrange(t, "b n (h d) -> h b n d", h=self.num_heads) for t in (self.q(x), self.k(x), self.v(x)))
        if self.how == "kernel":
            self.keep(q.transpose(0, 1), k.transpose(0, 1))
            mix = F.scaled_dot_product_attention(q, k, v)
        else:
            weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
            self.keep(weights.transpose(0, 1))
            mix = weights @ v
        mix = self.silence(mix.transpose(0, 1))
        return self.out(rearrange(mix, "b h n d -> b n (h d)"))


class OwnParameters(Oracle):
    """Values from a bare parameter, changed on their way: numbers cannot be recognised in what went in."""

    def __init__(self, order: str, heads: int = 4) -> None:
        super().__init__(heads)
        self.order = order
        self.w = nn.Parameter(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(5)) * 0.3)

    def forward(self, x: Tensor) -> Tensor:
        h, sizes = self.num_heads, {"h": self.num_heads, "b": x.shape[0]}
        q, k = (rearrange(t, f"b n (h d) -> {self.order} n d", h=h) for t in (self.q(x), self.k(x)))
        v = torch.tanh(rearrange(x @ self.w, f"b n (h d) -> {self.order} n d", h=h))
        q, k = torch.sin(q), torch.sin(k)
        weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
        self.keep(rearrange(weights, f"{self.order} q k -> b h q k", **sizes))
        mix = self.silence(rearrange(torch.bmm(weights, v), f"{self.order} n d -> b h n d", **sizes))
        return self.out(rearrange(mix, "b h n d -> b n (h d)"))


class SeveralLayers(nn.Module):
    """Two of one kind with a residual between."""

    def __init__(self, kind: type[Oracle], **how: Any) -> None:
        super().__init__()
        self.first, self.second = kind(**how), kind(**how)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        return x + self.second(x)


class SharedKeys(Oracle):
    """One key head for all (Shazeer 2019), repeated, with batch and heads merged."""

    def __init__(self, order: str, heads: int = 4) -> None:
        super().__init__(heads, key_heads=1)
        self.order = order

    def forward(self, x: Tensor) -> Tensor:
        h, sizes = self.num_heads, {"h": self.num_heads, "b": x.shape[0]}
        q = rearrange(self.q(x), f"b n (h d) -> {self.order} n d", h=h)
        k, v = (repeat(t, f"b n d -> {self.order} n d", h=h) for t in (self.k(x), self.v(x)))
        weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
        self.keep(rearrange(weights, f"{self.order} q k -> b h q k", **sizes))
        mix = self.silence(rearrange(weights @ v, f"{self.order} n d -> b h n d", **sizes))
        return self.out(rearrange(mix, "b h n d -> b n (h d)"))


class OneHeadInWindows(Oracle):
    """A single head over windows on an axis of their own, (b, w, n, d): windows are no heads."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__(heads=1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (rearrange(t, "b (w n) d -> b w n d", w=2) for t in (self.q(x), self.k(x), self.v(x)))
        weights = (q @ k.mT / math.sqrt(self.d)).softmax(-1)
        self.keep(weights.flatten(0, 1)[:, None])
        return self.out(rearrange(weights @ v, "b w n d -> b (w n) d"))
