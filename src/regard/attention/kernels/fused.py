"""The same answer from PyTorch's own kernels.

SDPA returns no weights, and none are needed: the map is computed from q and k. Padding is served by slicing
each sequence to its length, so padded keys are never read and causal attention keeps its flag.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.as_4d import expand_4d
from regard.attention.axes.heads import match_heads
from regard.attention.axes.sizes import Sizes
from regard.attention.map.computed import find_seen_keys
from regard.attention.mask.base import And, Mask
from regard.attention.mask.causal import Causal
from regard.attention.mask.padding import Padding
from regard.attention.score.bias import Bias
from regard.attention.sparse.banded import attend_banded, serves
from regard.errors import PathError

Gradients = tuple[Tensor | None, ...]

SLICED_FROM = 256  # keys; below, one call with a mask is cheaper than one call per sequence


class SdpaPlan(NamedTuple):
    """What is left of a mask when SDPA's causal flag and slicing have taken their part."""

    causal: bool
    padding: Padding | None
    rest: Mask | None


EVERYTHING = SdpaPlan(False, None, None)


def plan_sdpa(mask: Mask, sizes: Sizes) -> SdpaPlan:
    """Take causal and padding out of the mask where the kernel can do without a tensor."""
    if isinstance(mask, Causal):
        return plan_causal(mask, sizes)
    if isinstance(mask, Padding):
        return SdpaPlan(False, mask, None)
    if isinstance(mask, And):
        left, right = plan_sdpa(mask.left, sizes), plan_sdpa(mask.right, sizes)
        if left.rest is None and right.rest is None and not (left.padding and right.padding):
            return SdpaPlan(left.causal or right.causal, left.padding or right.padding, None)
    return SdpaPlan(False, None, mask)


def plan_causal(mask: Causal, sizes: Sizes) -> SdpaPlan:
    """SDPA aligns its flag to the first key; a single last query sees everything."""
    offset = mask.offset(sizes)
    if offset == 0:
        return SdpaPlan(True, None, None)
    if offset >= sizes.k - 1:
        return EVERYTHING
    return SdpaPlan(False, None, mask)


def attend_fused(
    q: Float[Tensor, "*_b q d"],
    k: Float[Tensor, "*_c k d"],
    v: Float[Tensor, "*_d k e"],
    sizes: Sizes,
    mask: Mask | None,
    bias: Tensor | Bias | None,
    scale: float,
    dropout: float,
    live: bool,
) -> tuple[Float[Tensor, "*_b q e"], str]:
    """(mix, path) from `F.scaled_dot_product_attention`; `live` where values may be read."""
    qs, ks, vs = q.shape, k.shape, v.shape
    width = vs[-1]
    if len(qs) != 4 or qs[0] != sizes.lead[0] or ks[0] != qs[0] or vs[0] != qs[0] or vs[1] != ks[1]:
        q, k, v = (expand_4d(x, sizes) for x in (q, k, v))
        k, v = match_heads(k, v)
    if width != qs[-1]:
        q, k, v = pad_widths(q, k, v)
    if q.stride(-1) != 1 or k.stride(-1) != 1 or v.stride(-1) != 1:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    pattern = serves(q, mask, sizes) if live and bias is None and not dropout else None
    if pattern is not None:
        mix = attend_banded(q, k, v, pattern, scale)[..., :width]
        return mix if len(sizes.lead) == 2 else mix.reshape(*sizes.lead, sizes.q, width), "banded"
    how = EVERYTHING if mask is None else plan_sdpa(mask, sizes)
    slices = how.padding is not None and live and sizes.k >= SLICED_FROM and can_slice(how, sizes)
    if bias is None and how.rest is None and (how.padding is None or slices):
        if how.padding is None:
            mix = sdpa(q, k, v, None, how.causal, scale, dropout, live)
            path = "fused"
        else:
            mix, path = attend_sliced(q, k, v, how, scale, dropout), "sliced"
    else:
        added, k, v = as_tensor(k, v, sizes, mask, bias, q, live)
        mix = sdpa(q, k, v, added, False, scale, dropout, live)
        path = "fused"
    if mix.shape[-1] != width:
        mix = mix[..., :width]
    return mix if len(sizes.lead) == 2 else mix.reshape(*sizes.lead, sizes.q, width), path


def sdpa(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float, dropout: float, live: bool
) -> Float[Tensor, "b h q e"]:
    """The kernel itself. Its second derivative is missing in PyTorch, and the error says what to do instead."""
    # Spelt out, because a compiler that keeps sizes open knows the answer only as a symbol and SDPA takes a bool.
    grouped = True if q.shape[1] != k.shape[1] else False  # noqa: SIM210
    if causal and not scale > 0:  # the flag hides by −inf before the kernel scales, and −inf · 0 is no number
        q, scale = q * scale, 1.0
    mix = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=grouped)
    if live:
        forbid_second_derivative(mix)
    return mix


def forbid_second_derivative(mix: Tensor) -> None:
    """Have the kernel's gradient say that it cannot be differentiated again, should somebody try."""
    if mix.grad_fn is not None and mix.grad_fn.name().startswith("ScaledDotProduct"):
        mix.grad_fn.register_hook(refuse_second_derivative)


def refuse_second_derivative(
    gradients: tuple[Tensor | None, ...], _: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...] | None:
    """Called with the gradients of a fused kernel: nothing to do unless somebody will differentiate them again."""
    if not torch.is_grad_enabled():
        return None
    return tuple(NoSecondDerivative.apply(x) if x is not None and x.requires_grad else x for x in gradients)


class NoSecondDerivative(torch.autograd.Function):
    """A gradient that cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, x: Tensor) -> Tensor:
        raise PathError("the fused kernel has no second derivative; attend(…, path='explicit') has all of them")


def can_slice(how: SdpaPlan, sizes: Sizes) -> bool:
    """Lengths that are known, and a causal flag that means the same on the slice."""
    if how.padding is None or how.padding.known is None or len(sizes.lead) != 2:
        return False
    return how.padding.side == "right" or not how.causal or sizes.q == sizes.k


def attend_sliced(
    q: Float[Tensor, "b h q d"],
    k: Float[Tensor, "b g k d"],
    v: Float[Tensor, "b g k d"],
    how: SdpaPlan,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h q d"]:
    """One call per run of sequences of equal length, each on its own keys only."""
    assert how.padding is not None
    assert how.padding.known is not None
    lengths, total = how.padding.known, k.shape[2]
    starts = [0, *(i for i in range(1, len(lengths)) if lengths[i] != lengths[i - 1]), len(lengths)]
    parts = []
    for first, stop in pairwise(starts):
        length = lengths[first]
        keys = slice(0, length) if how.padding.side == "right" else slice(total - length, total)
        queries = slice(0, q.shape[2])
        if how.causal and how.padding.side == "left":  # queries before the first real key see nothing
            queries = slice(q.shape[2] - min(length, q.shape[2]), q.shape[2])
        if not length:
            parts.append(q.new_zeros(stop - first, *q.shape[1:]))
            continue
        some = (q[first:stop, :, queries], k[first:stop, :, keys], v[first:stop, :, keys])
        mix = sdpa(*some, None, how.causal, scale, dropout, True)
        parts.append(F.pad(mix, (0, 0, queries.start, 0)) if queries.start else mix)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def as_tensor(
    k: Tensor, v: Tensor, sizes: Sizes, mask: Mask | None, bias: Tensor | Bias | None, q: Tensor, live: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """What is added to the scores as one tensor of four axes, and k and v fit to be read under it.

    While compiling, where nobody can look at the mix afterwards, keys that no query sees are set to 0.
    """
    allowed = None
    if mask is not None:
        allowed = mask.whole(sizes, q.device)
        if allowed.shape[-1] != sizes.k:
            allowed = allowed.expand(*allowed.shape[:-1], sizes.k)
        if allowed.dim() != 4:
            allowed = expand_4d(allowed, sizes)
        if not live:
            seen = find_seen_keys(allowed, k)
            k, v = k.masked_fill(~seen, 0.0), v.masked_fill(~seen, 0.0)
    if bias is None:
        assert allowed is not None
        return allowed, k, v
    if not isinstance(bias, Tensor):
        queries = torch.arange(sizes.q, device=q.device) + sizes.offset
        bias = bias.block(queries, torch.arange(sizes.k, device=q.device))
    bias = bias.to(q.dtype) if bias.dtype != torch.float32 or q.dtype == torch.float64 else bias
    bias = expand_4d(bias.expand(*bias.shape[:-1], sizes.k), sizes)
    return (bias if allowed is None else torch.where(allowed, bias, -torch.inf)), k, v


def pad_widths(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Fused kernels want one width for q, k and v: channels of 0 change neither scores nor mix."""
    more = v.shape[-1] - q.shape[-1]
    if more > 0:
        return F.pad(q, (0, more)), F.pad(k, (0, more)), v
    return q, k, F.pad(v, (0, -more))
