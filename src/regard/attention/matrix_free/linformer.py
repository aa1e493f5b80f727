"""Linformer: attention over a few mixtures of the keys instead of over all of them."""

from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from regard.attention.axes.as_4d import expand_4d
from regard.attention.axes.heads import choose_key_heads, match_heads, multiply_grouped
from regard.attention.axes.select import Index, Where, pick, take
from regard.attention.kernels.finite import is_bounded, looks_sound
from regard.attention.kernels.fused import pad_widths, sdpa
from regard.attention.map.computed import Computed
from regard.attention.map.implied import Implied
from regard.attention.mask import Sizes
from regard.attention.matrix_free.mechanism import Cost, VersionedTensor, make_generator, must_count
from regard.attention.matrix_free.seen import KeyMask, split_mask
from regard.attention.weigh.softmax import softmax
from regard.eager import autocasts, readable
from regard.errors import ConfigError, PathError, ShapeError

SHARES = ("key-value", "none")
WHY_NOT = (
    "Linformer mixes the keys before it knows who asks, so it honours masks of keys alone, such as padding(lengths), "
    "but not {mask}; leave by= out, as windows, Longformer and BigBird are quick as masks"
)


class Linformer(nn.Module):
    r"""Attention over `rank` learned mixtures of the keys and of the values (Wang et al. 2020, eq. 7).

    $\mathrm{mix} = \mathrm{softmax}(q (E k)^\top / \sqrt d)\, F v$ with E and F of (rank, length), learned. They are
    shared by all heads, or one for each where `heads` is their number; `share="key-value"` makes F the same as E,
    "none" keeps both (§4, the paper's sharings; give one Linformer to several layers to share it among them).

    Inputs shorter than `length` use the first columns; longer ones are an error. Keys that padding hides are taken
    out before they are mixed, and so is a mixture that holds no visible key: with the identity as E and F and
    rank ≥ n this is exact attention. `causal()` is refused: every mixture holds every position, later ones too.

    The map is $\mathrm{softmax}(q (E k)^\top / \sqrt d)\, F$, what each value is multiplied by. Its rows need not add
    to one, and may hold negative numbers. E and F start as normal numbers of variance 1 / length, from `generator`,
    or from a fixed seed without one, so that a mixture is as large as a key.

    >>> import regard, torch
    >>> linformer = regard.Linformer(64, rank=16)
    >>> x = torch.randn(2, 4, 50, 8)
    >>> a = regard.attend(x, x, x, mask=regard.padding([50, 20]), by=linformer)
    >>> a.path, a.mix.shape, a.weights.kind
    ('linformer', torch.Size([2, 4, 50, 8]), 'implied')
    """

    name = "linformer"
    own_of_values: nn.Parameter | None

    def __init__(
        self,
        length: int,
        rank: int = 256,
        *,
        heads: int | None = None,
        share: str = "key-value",
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        must_count(length=length, rank=rank, heads=1 if heads is None else heads)
        if share not in SHARES:
            raise ConfigError(f"share is {share!r}, but it is {' or '.join(map(repr, SHARES))}; give one of these")
        self.length, self.rank, self.heads, self.share = length, rank, heads, share
        shape = (rank, length) if heads is None else (heads, rank, length)
        source = make_generator(generator)
        first, *second = (
            torch.randn(shape, generator=source, device=source.device).cpu() / length**0.5
            for _ in range(1 if share == "key-value" else 2)
        )
        self.of_keys = nn.Parameter(first)
        self.register_parameter("own_of_values", nn.Parameter(second[0]) if second else None)

    @property
    def of_values(self) -> Tensor:
        """F: what mixes the values; the same as E, which mixes the keys, where it is shared."""
        own = self.own_of_values
        return self.of_keys if own is None else own

    def check(self, heads: int, kv_heads: int, width: int) -> None:
        """Raise unless there is one mixture for all heads, one for each, or one for each key head."""
        if self.heads not in (None, heads, kv_heads):
            raise ShapeError(
                f"q has {heads} heads and k {kv_heads}, but this Linformer mixes for {self.heads}; "
                f"make it with heads={kv_heads}, or without heads= for one that all share"
            )

    def attend(self, computed: Computed, v: Float[Tensor, "*_b k e"]) -> tuple[Float[Tensor, "*_c q e"], Implied]:
        """The mix, and the map that it amounts to."""
        sizes, dtype, width = computed.sizes, computed.dtype, v.shape[-1]
        self.check(sizes.heads, computed.k.shape[-3] if computed.k.ndim > 2 else 1, computed.q.shape[-1])
        seen = self.check_mask(computed, sizes)
        e, f = (x[..., : sizes.k].to(dtype) for x in (self.of_keys, self.of_values))
        with torch.autocast(v.device.type, enabled=False) if autocasts(v) else nullcontext():
            q, k, values = (expand_4d(x, sizes).to(dtype) for x in (computed.q, computed.k, v))
            k, values = match_heads(k, values)
            if seen.keys is not None:
                there = seen.keys.mT  # b h k 1
                if there.shape[1] not in (1, k.shape[1]):
                    k, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, values))
                k, values = k.masked_fill(~there, 0.0), values.masked_fill(~there, 0.0)
            keys, values = project(e, k), project(f, values)
            held = find_held(e, seen.keys, sizes)
            if not sizes.q or not sizes.k or not width or 0 in sizes.lead:
                mix = q.new_zeros(*q.shape[:-1], width)
            else:
                some = pad_widths(q, *match_heads(keys, values))
                added, live = None if held is None else expand_rows(held, q), readable(v)
                mix = sdpa(*some, added, False, computed.scale, 0.0, live)
                if live and not looks_sound(mix, False, False) and not is_bounded(some[0], some[1], computed.scale):
                    scores = multiply_grouped(some[0] * computed.scale, some[1].mT)
                    scores = scores if held is None else scores.masked_fill(~held, -torch.inf)
                    mix = multiply_grouped(scores.softmax(-1), some[2])
        mixed = MixedKeys(keys, VersionedTensor("the projection of the values", self.of_values), held, seen.keys)
        imply = partial(rows_of, computed, mixed)
        implied = Implied(
            imply, sizes, device=computed.device, dtype=computed.q.dtype, mask=computed.mask, exact=computed
        )
        return mix[..., :width].to(v.dtype).reshape(*sizes.lead, sizes.q, width), implied

    def check_mask(self, computed: Computed, sizes: Sizes) -> KeyMask:
        """Which keys count; raises where a mask or a length cannot be honoured."""
        if sizes.k > self.length:
            raise ShapeError(
                f"there are {sizes.k} keys, but this Linformer mixes at most {self.length}; "
                f"make it as Linformer({sizes.k}, …), or cut the input"
            )
        seen = split_mask(computed.mask, sizes, computed.device, WHY_NOT)
        if seen.ahead is not None:
            raise PathError(
                "causal() came with by=Linformer, but each of its mixtures holds all positions, so every query would "
                "see later keys; use by=Performer(…) or mask=window(…) & causal() instead"
            )
        return seen

    def cost(self, n: int, *, width: int = 64, gradients: bool = False) -> Cost:
        """What n queries and n keys cost, per head of `width`; the kernel holds no n × rank weights."""
        k, d = self.rank, width
        memory = 2 * k * d + (n if gradients else 0)
        grows = "O(n + k·d)" if gradients else "O(k·d)"
        return Cost(4 * n * k * d, memory, f"O(n·k·d) time, {grows} memory, with n = {n}, k = {k}, d = {d}")

    def extra_repr(self) -> str:
        heads = "" if self.heads is None else f", heads={self.heads}"
        return f"{self.length}, rank={self.rank}{heads}, share={self.share!r}"


def project(by: Float[Tensor, "*_p r k"], x: Float[Tensor, "b h k d"]) -> Float[Tensor, "b g r d"]:
    """`by` @ x; one product for all heads side by side where they share `by`."""
    if by.ndim == 3 and 1 < by.shape[0] < x.shape[1]:  # heads that share keys see different ones
        by = by.repeat_interleave(x.shape[1] // by.shape[0], 0)
    if by.ndim == 2:
        return (by @ x.transpose(1, 2).flatten(2)).unflatten(-1, (x.shape[1], -1)).transpose(1, 2)
    return multiply_grouped(by.expand(x.shape[0], *by.shape), x)


def find_held(
    by: Float[Tensor, "*_p r k"], keys: Bool[Tensor, "_b _h 1 k"] | None, sizes: Sizes
) -> Bool[Tensor, "_c _g 1 r"] | None:
    """Which mixtures hold any visible key, for one head or for all; None where all do, as learned ones will.

    Where nothing is held at all the answer is everything: the values are 0 there, and so is the mix.
    """
    by = by.detach() if by.ndim == 3 else by.detach()[None]  # h r k
    if keys is not None and keys.shape[1] > by.shape[0] > 1:
        by = by.repeat_interleave(keys.shape[1] // by.shape[0], 0)
    held = by.any(-1)[None, :, None] if keys is None else (keys.to(by.dtype) @ by.ne(0).to(by.dtype).mT) > 0
    if readable(held) and bool(held.all()):
        return None
    held = held | ~held.any(-1, keepdim=True)
    return held if held.shape[1] == 1 else held.repeat_interleave(sizes.heads // held.shape[1], 1)


def expand_rows(held: Bool[Tensor, "_b _h 1 r"], q: Float[Tensor, "b h q d"]) -> Bool[Tensor, "b _h q r"]:
    return held.expand(q.shape[0], -1, q.shape[2], -1)


class MixedKeys(NamedTuple):
    """What a map is computed from, beside q: four axes each, of size 1 where all have it in common."""

    keys: Float[Tensor, "b g r d"]  # E k
    of_values: VersionedTensor  # F
    held: Bool[Tensor, "_b _h 1 r"] | None
    seen: Bool[Tensor, "_b _h 1 _k"] | None


def rows_of(computed: Computed, mixed: MixedKeys, chosen: tuple[Index, ...], rows: Where) -> Float[Tensor, "*_b _r k"]:
    """Whole rows of softmax(q (E k)ᵀ) F; a hidden key has 0."""
    sizes = computed.sizes
    part = computed.pick(chosen) if chosen else computed
    q = take(part.q, -2, rows).to(computed.dtype)
    f = mixed.of_values()[..., : sizes.k].to(computed.dtype)
    keys, f = pick_shared(mixed.keys, sizes, chosen), pick_shared(f[(None,) * (4 - f.ndim)], sizes, chosen)
    held = None if mixed.held is None else pick_shared(mixed.held, sizes, chosen)
    computed.check_fresh()
    found = multiply_grouped(softmax(multiply_grouped(q * computed.scale, keys.mT), held), f)
    return found if mixed.seen is None else found.masked_fill(~pick_shared(mixed.seen, sizes, chosen), 0.0)


def pick_shared(x: Tensor, sizes: Sizes, chosen: tuple[Index, ...]) -> Tensor:
    """Some batch entries and heads of a tensor of four axes; a head of x may stand for several of the map's."""
    lead, heads = sizes.lead, x.shape[1]
    batch = sizes.batch if x.shape[0] != 1 else (1,) * len(sizes.batch)
    x = x.reshape(*(batch if lead else ()), *((heads,) if lead else ()), *x.shape[-2:])
    return pick(x, choose_key_heads(chosen, lead, heads))
