"""Sums over the keys read so far: what a Performer remembers of them, whatever their number."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.matrix_free.features import Powers, powers

CHUNK = 256  # rows at a time, at most: their features stay in the processor's cache, and memory does not grow with n
TRIANGLE = 128  # the same where each chunk looks at itself under a causal mask, at a cost that grows with the chunk
CACHED = 1 << 18  # features at a time, over all heads
LOWEST = -1e30  # below every exponent; −inf − −inf would be NaN


class Kernel(NamedTuple):
    """The feature map of one call: the scale is split over both sides, √|scale| in the directions of each."""

    of_queries: Float[Tensor, "m d"]
    of_keys: Float[Tensor, "m d"]
    kind: str
    half_scale: float

    def keys(self, k: Tensor, seen: Tensor | None) -> Powers:
        found = powers(k, self.of_keys, self.kind, self.half_scale)
        if seen is None:
            return found
        return found._replace(exponent=found.exponent.masked_fill_(~seen, -torch.inf))

    def queries(self, q: Tensor, top: Float[Tensor, "*b 1 f"]) -> Float[Tensor, "*b q g"]:
        """Features that belong to keys lowered by `top`: it is given back here, and each query's own maximum taken.

        Both cancel against the normaliser. A query then has a feature of 1 that some key has with 1, too, so the
        normaliser of positive features is 1 or more, whatever the numbers.
        """
        found = powers(q, self.of_queries, self.kind, None)
        if found.factor is not None:
            return found.factor  # their exponents are alike, so nothing is left of them
        raise_sums = found.exponent.add_(top)
        return raise_sums.sub_(raise_sums.detach().amax(-1, keepdim=True)).exp_()


def kernel_of(directions: Float[Tensor, "m d"], kind: str, scale: float) -> Kernel:
    size = math.sqrt(abs(scale))
    return Kernel(directions * math.copysign(size, scale), directions * size, kind, abs(scale) / 2)


class Sums(NamedTuple):
    """Σ φ(k)ᵀ v and Σ φ(k) over keys, with φ lowered by the largest exponent that each feature has had."""

    top: Float[Tensor, "*b 1 f"]
    values: Float[Tensor, "*b g e"]
    total: Float[Tensor, "*b 1 g"]


def make_empty_sums(k: Float[Tensor, "*b k d"], v: Float[Tensor, "*b k e"], kernel: Kernel) -> Sums:
    """Before the first key."""
    directions, lead = kernel.of_keys, k.shape[:-2]
    count = directions.shape[0] * (1 if kernel.kind == "positive" else 2)
    of_top = 1 if kernel.kind == "trigonometric" else count
    return Sums(
        directions.new_full((*lead, 1, of_top), LOWEST),
        directions.new_zeros(*lead, count, v.shape[-1]),
        directions.new_zeros(*lead, 1, count),
    )


def raise_sums(sums: Sums, found: Powers) -> Sums:
    """The same sums, lowered by what more keys may need. No gradient: a common factor cancels in the mix."""
    exponent = found.exponent.detach()
    if not exponent.shape[-2]:
        return sums
    top = torch.maximum(sums.top, exponent.amax(-2, keepdim=True))
    shrunk = (sums.top - top).exp()
    return Sums(top, sums.values * shrunk.mT, sums.total * shrunk)


def add_sums(sums: Sums, of_keys: Float[Tensor, "*b k g"], v: Float[Tensor, "*b k e"]) -> Sums:
    return Sums(sums.top, sums.values + of_keys.mT @ v, sums.total + of_keys.sum(-2, keepdim=True))


def absorb(sums: Sums, k: Tensor, v: Tensor, kernel: Kernel, seen: Tensor | None) -> Sums:
    """The sums with these keys in them; `seen`, (…, k, 1), is False where one is not there."""
    for some, values, there in chunks(height_of(sums, CHUNK), k, v, seen):
        found = kernel.keys(some, there)
        sums = raise_sums(sums, found)
        sums = add_sums(sums, found.lower(sums.top), values)
    return sums


def read(sums: Sums, q: Float[Tensor, "*b r q d"], kernel: Kernel) -> Float[Tensor, "*b r q e"]:
    """The mix of queries that see everything in the sums; r heads share what one key head holds."""
    parts = []
    for (some,) in chunks(height_of(sums, CHUNK), q):
        of_queries = kernel.queries(some.flatten(-3, -2), sums.top)
        mix = divide(of_queries @ sums.values, of_queries @ sums.total.mT, kernel.kind)
        parts.append(mix.unflatten(-2, (q.shape[-3], -1)))
    return torch.cat(parts, -2)


def read_on(
    sums: Sums, q: Tensor, k: Tensor, v: Tensor, kernel: Kernel, seen: Tensor | None
) -> tuple[Float[Tensor, "*b r q e"], Sums]:
    """The mix of queries that each see the sums, the keys before theirs and their own; and the sums after them.

    Chunk by chunk: what stands before the chunk comes from the sums, what stands in it from a small triangle
    (Choromanski et al. 2021, §2.5.1 by chunks), so time and memory grow with n, not with n².
    """
    parts, heads = [], q.shape[-3]
    for mine, keys, values, there in chunks(height_of(sums, TRIANGLE), q, k, v, seen):
        found = kernel.keys(keys, there)
        sums = raise_sums(sums, found)
        of_keys = found.lower(sums.top)
        of_queries = kernel.queries(mine.flatten(-3, -2), sums.top)
        near = (of_queries @ of_keys.mT).unflatten(-2, (heads, -1)).tril().flatten(-3, -2)
        normaliser = of_queries @ sums.total.mT + near.sum(-1, keepdim=True)
        mix = divide(of_queries @ sums.values + near @ values, normaliser, kernel.kind)
        parts.append(mix.unflatten(-2, (heads, -1)))
        sums = add_sums(sums, of_keys, values)
    return torch.cat(parts, -2), sums


def divide(mix: Tensor, normaliser: Tensor, kind: str) -> Tensor:
    """mix / normaliser, and 0 where there is nothing to divide by: a query that sees nothing mixes to zero.

    The normaliser of trigonometric features is a difference, and what is left of it near 0 is no number to trust.
    """
    known = torch.finfo(normaliser.dtype)
    void = normaliser.abs() <= (known.eps if kind == "trigonometric" else known.tiny)
    return mix * normaliser.masked_fill(void, 1.0).reciprocal().masked_fill(void, 0.0)


def height_of(sums: Sums, most: int) -> int:
    """How many rows at a time."""
    return max(32, min(most, CACHED // max(1, sums.total.numel())))


def chunks(height: int, *xs: Tensor | None) -> list[tuple[Any, ...]]:
    """Rows of several tensors at once, one list of parts each; split once, so that the way back joins them once."""
    count = next(x.shape[-2] for x in xs if x is not None)
    pieces = -(-count // height) or 1
    return list(zip(*([None] * pieces if x is None else x.split(height, -2) for x in xs)))


class RunningAttention:
    """A Performer that reads as it goes: it remembers sums, the same amount after a million tokens as after one.

    `step(q, k, v)` takes the next tokens, one or many, and gives what `attend(…, mask=causal(), by=performer)` would
    give at their places. Begun by `Performer.begin()`.

    >>> import regard, torch
    >>> performer, x = regard.Performer(8, 16), torch.randn(2, 5, 8)
    >>> running = performer.begin()
    >>> steps = [running.step(t, t, t) for t in x.split(1, -2)]
    >>> whole = regard.attend(x, x, x, mask=regard.causal(), by=performer).mix
    >>> torch.allclose(torch.cat(steps, -2), whole, atol=1e-5), running.seen
    (True, 5)
    """

    def __init__(self, directions: Float[Tensor, "m d"], kind: str, scale: float | None) -> None:
        self.directions, self.kind, self.scale = directions, kind, scale
        self.sums: Sums | None = None
        self.seen = 0  # tokens read

    def step(
        self,
        q: Float[Tensor, "*_b t d"],
        k: Float[Tensor, "*_c t d"],
        v: Float[Tensor, "*_c t e"],
        *,
        keys: Bool[Tensor, "*_k t"] | None = None,
    ) -> Float[Tensor, "*_b t e"]:
        """The mix of the next tokens; `keys`, (t,) or (…, h, t), is False where one is padding."""
        dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        scale = q.shape[-1] ** -0.5 if self.scale is None else self.scale
        kernel = kernel_of(self.directions.to(dtype), self.kind, scale)
        with torch.autocast(q.device.type, enabled=False):
            wide_q, wide_k, wide_v = (x.to(dtype) if x.ndim > 2 else x.to(dtype)[None] for x in (q, k, v))
            groups = wide_k.shape[-3]
            wide_q = wide_q.unflatten(-3, (groups, -1))
            there = None
            if keys is not None:
                there = keys.unsqueeze(-1)
                wide_k, wide_v = wide_k.masked_fill(~there, 0.0), wide_v.masked_fill(~there, 0.0)
            sums = make_empty_sums(wide_k, wide_v, kernel) if self.sums is None else self.sums
            mix, self.sums = read_on(sums, wide_q, wide_k, wide_v, kernel, there)
        self.seen += q.shape[-2]
        mix = mix.flatten(-4, -3).to(v.dtype)
        return mix if q.ndim > 2 else mix[0]

    def reorder(self, index: Tensor) -> None:
        """Keep these entries of the batch, in this order: beams that live on."""
        if self.sums is not None:
            self.sums = Sums(*(x.index_select(0, index.to(x.device)) for x in self.sums))
