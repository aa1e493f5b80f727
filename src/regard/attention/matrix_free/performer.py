"""Performer: softmax attention by random features, in time and memory that grow with n."""

from contextlib import nullcontext
from functools import partial

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from regard.attention.axes.as_4d import expand_4d
from regard.attention.axes.heads import match_heads, multiply_grouped
from regard.attention.axes.select import Index, Where, places, take
from regard.attention.map.computed import Computed, find_seen_keys
from regard.attention.map.implied import Implied
from regard.attention.matrix_free.features import KINDS, draw
from regard.attention.matrix_free.mechanism import Cost, VersionedTensor, make_generator, must_count
from regard.attention.matrix_free.prefix import (
    LOWEST,
    TRIANGLE,
    Kernel,
    RunningAttention,
    absorb,
    divide,
    kernel_of,
    make_empty_sums,
    read,
    read_on,
)
from regard.attention.matrix_free.seen import split_mask
from regard.eager import autocasts
from regard.errors import ConfigError, ShapeError

WHY_NOT = (
    "Performer adds keys up before it knows who asks, so it honours causal() and masks of keys alone, such as "
    "padding(lengths), but not {mask}; leave by= out, as windows, Longformer and BigBird are quick as masks"
)


class Performer(nn.Module):
    r"""Attention by `features` random features φ, without the matrix (Choromanski et al. 2021, FAVOR+).

    $e^{q \cdot k / \sqrt d} ≈ φ(q) \cdot φ(k)$, so $\mathrm{mix}_i = φ(q_i) \sum_j φ(k_j)^\top v_j \,/\, φ(q_i) \cdot
    \sum_j φ(k_j)$, and both sums are made once for all queries. `width` is that of a head. The error falls as
    $1/\sqrt{\mathrm{features}}$ and grows with the size of q and k: `a.error()` measures it on your own.

    `kind` is "positive" ($e^{ωx-|x|²/2}$, lemma 1), "hyperbolic" ($e^{±ωx-|x|²/2}$: two features of each direction,
    smaller error) or "trigonometric" (sine and cosine: large errors where weights are small, for comparison).
    `orthogonal` directions have a smaller error than independent ones (theorem 2).

    The directions ω are a buffer, drawn from `generator`, or from a fixed seed without one, and kept until `redraw`.
    Masks: `causal()`, those of keys alone such as `padding`, and both; others are refused. Sums are in float32 or
    better and lowered by maxima that cancel, so float16 input is safe. A query that sees nothing mixes to zero.
    `torch.compile` traces it with one copy of the loop for each chunk of rows; nothing is compiled specially.

    >>> import regard, torch
    >>> performer = regard.Performer(16, features=128)
    >>> x = torch.randn(2, 4, 50, 16, generator=torch.Generator().manual_seed(0)) / 2
    >>> a = regard.attend(x, x, x, mask=regard.causal(), by=performer)
    >>> a.path, a.weights
    ('performer', AttentionMap (b 2, h 4, q 50, k 50), implied, causal())
    >>> 0 < a.error().mix < 0.5
    True
    """

    name = "performer"
    directions: Tensor

    def __init__(
        self,
        width: int,
        features: int = 256,
        *,
        kind: str = "positive",
        orthogonal: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        must_count(width=width, features=features)
        if kind not in KINDS:
            raise ConfigError(f"kind is {kind!r}, but features are {', '.join(map(repr, KINDS))}; give one of these")
        self.width, self.features, self.kind, self.orthogonal = width, features, kind, orthogonal
        self.register_buffer(
            "directions", draw(features, width, orthogonal=orthogonal, generator=make_generator(generator)).cpu()
        )

    def redraw(self, generator: Generator) -> None:
        """Draw the directions anew. Maps that were made before keep theirs."""
        drawn = draw(self.features, self.width, orthogonal=self.orthogonal, generator=generator)
        self.directions = drawn.to(self.directions)

    def check(self, heads: int, kv_heads: int, width: int) -> None:
        """Raise unless heads are of the width that the directions have; their number does not matter."""
        if width != self.width:
            raise ShapeError(
                f"q has heads of width {width}, but this Performer has directions of width {self.width}; "
                f"make it as Performer({width})"
            )

    def attend(self, computed: Computed, v: Float[Tensor, "*_b k e"]) -> tuple[Float[Tensor, "*_c q e"], Implied]:
        """The mix and the map that it amounts to: φ(q) φ(k)ᵀ where the mask allows it, each row divided by its sum."""
        sizes, dtype = computed.sizes, computed.dtype
        self.check(sizes.heads, computed.k.shape[-3] if computed.k.ndim > 2 else 1, computed.q.shape[-1])
        seen = split_mask(computed.mask, sizes, computed.device, WHY_NOT)
        with torch.autocast(v.device.type, enabled=False) if autocasts(v) else nullcontext():
            q, k, values = (expand_4d(x, sizes).to(dtype) for x in (computed.q, computed.k, v))
            k, values = match_heads(k, values)
            there = None
            if seen.keys is not None:
                there = seen.keys.mT  # b h k 1
                if there.shape[1] not in (1, k.shape[1]):  # heads that share keys see different ones
                    k, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, values))
                k, values = k.masked_fill(~there, 0.0), values.masked_fill(~there, 0.0)
                there = there.expand(*there.shape[:-2], k.shape[-2], 1)
            kernel = kernel_of(self.directions.to(dtype), self.kind, computed.scale)
            q = q.unflatten(1, (k.shape[1], -1))  # b g r q d
            mix = mix_by_features(q, k, values, kernel, there, seen.ahead).to(v.dtype).flatten(1, 2)
        directions = VersionedTensor("the directions", self.directions)
        imply = partial(rows_of, computed, directions, self.kind)
        implied = Implied(
            imply, sizes, device=computed.device, dtype=computed.q.dtype, mask=computed.mask, exact=computed
        )
        return mix.reshape(*sizes.lead, sizes.q, v.shape[-1]), implied

    def begin(self, *, scale: float | None = None) -> RunningAttention:
        """The recurrent form, before its first token: for writing one token after another."""
        return RunningAttention(self.directions, self.kind, scale)

    def cost(self, n: int, *, width: int | None = None, causal: bool = False, gradients: bool = False) -> Cost:
        """What n queries and n keys cost, per head, with values of `width` (that of q and k unless given).

        Where `gradients` are wanted, the features of every query and key are kept; else those of one chunk.
        """
        d, m = self.width, self.features
        e = d if width is None else width
        f = m if self.kind == "positive" else 2 * m
        chunk = min(n, TRIANGLE)
        time = 2 * n * m * d + 2 * n * f * (e + 1) + (n * chunk * (f + e) if causal else 0)
        memory = f * (e + 2) + 2 * f * (n if gradients else chunk) + (chunk * chunk if causal else 0)
        grows = "O(n·m)" if gradients else "O(m·d)"
        return Cost(time, memory, f"O(n·m·d) time, {grows} memory, with n = {n}, m = {f}, d = {d}")

    def extra_repr(self) -> str:
        how = "orthogonal" if self.orthogonal else "independent"
        return f"{self.width}, features={self.features}, kind={self.kind!r}, {how}"


def mix_by_features(
    q: Float[Tensor, "b g r q d"],
    k: Float[Tensor, "b g k d"],
    v: Float[Tensor, "b g k e"],
    kernel: Kernel,
    there: Tensor | None,
    ahead: int | None,
) -> Float[Tensor, "b g r q e"]:
    """All queries after all keys, or, where query i sees no key after i + `ahead`, both along each other."""
    sums = make_empty_sums(k, v, kernel)
    if ahead is None:
        return read(absorb(sums, k, v, kernel, there), q, kernel)
    blind, before = max(0, -ahead), max(0, ahead)  # queries before the first key, keys before the first query
    paired = max(0, min(q.shape[-2] - blind, k.shape[-2] - before))
    parts = [q.new_zeros(*q.shape[:-2], min(blind, q.shape[-2]), v.shape[-1])] if blind else []
    if before:
        early = None if there is None else there[..., :before, :]
        sums = absorb(sums, k[..., :before, :], v[..., :before, :], kernel, early)
    if paired:
        keys = slice(before, before + paired)
        along = None if there is None else there[..., keys, :]
        some = q[..., blind : blind + paired, :], k[..., keys, :], v[..., keys, :]
        mix, sums = read_on(sums, *some, kernel, along)
        parts.append(mix)
    if blind + paired < q.shape[-2]:
        parts.append(read(sums, q[..., blind + paired :, :], kernel))  # these stand behind the last key
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def rows_of(computed: Computed, learned: VersionedTensor, kind: str, chosen: tuple[Index, ...], rows: Where) -> Tensor:
    """Whole rows of the map, in runs as short as the chunks of the mix, so that both lower alike."""
    computed.check_fresh()
    part = computed.pick(chosen) if chosen else computed
    kernel = kernel_of(learned().to(computed.dtype), kind, computed.scale)
    k = part.k.to(computed.dtype)
    wanted = places(rows, computed.sizes.q, computed.device)
    if computed.mask is None:
        return rows_at(part, kernel, k, wanted, None)
    runs = [rows_at(part, kernel, k, some, part.allowed(some)) for some in wanted.split(TRIANGLE)]
    return torch.cat(runs, -2)


def rows_at(part: Computed, kernel: Kernel, k: Tensor, rows: Tensor, allowed: Tensor | None) -> Tensor:
    """φ(q) φ(k)ᵀ for some queries, each row divided by its sum."""
    seen = None if allowed is None else find_seen_keys(allowed, k)
    found = kernel.keys(k if seen is None else k.masked_fill(~seen, 0.0), seen)
    count = found.exponent.shape[-1]
    top = found.exponent.new_full((*found.exponent.shape[:-2], 1, count), LOWEST)
    if k.shape[-2]:
        top = torch.maximum(top, found.exponent.detach().amax(-2, keepdim=True))
    of_keys = found.lower(top)
    q = take(part.q, -2, rows).to(k.dtype)
    if q.ndim > 2 and top.ndim > 2 and top.shape[-3] not in (1, q.shape[-3]):
        top = top.repeat_interleave(q.shape[-3] // top.shape[-3], -3)
    products = multiply_grouped(kernel.queries(q, top), of_keys.mT)
    products = products if allowed is None else products.masked_fill(~allowed, 0.0)
    shape = (*part.shape[:-2], len(rows), part.shape[-1])
    return divide(products, products.sum(-1, keepdim=True), kernel.kind).expand(shape)
