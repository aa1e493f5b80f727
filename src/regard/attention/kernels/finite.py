"""What is not finite: whether a kernel let through what it hid, or swallowed what it saw.

PyTorch's CPU kernel hides by adding −inf, so that NaN or inf in a hidden key or value can reach the mix. And it takes a
row whose largest score is not above −inf for a row that sees nothing: where NaN stands among fewer keys than a vector
register holds, a comparison with it is false, and the mix is 0 instead of NaN. Both leave a sign that is cheap to look
for. Asked only where values may be read: in eager mode, on the CPU.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.map import Computed
from regard.attention.map.blocks import BUDGET

SMALL = 1 << 15  # numbers; reading all of them is over before a part is found


def is_finite(x: Tensor) -> bool:
    """One sum tells: NaN and inf survive it."""
    return math.isfinite((x.detach() if x.requires_grad else x).sum().item())


def looks_sound(mix: Float[Tensor, "*_b q e"], masked: bool, flagged: bool) -> bool:
    """Whether a mix shows neither NaN nor a row of 0: 1 / 0 is inf, and one sum finds either.

    Under the kernel's causal flag (`flagged`) the last query tells of what was let through: the kernel reads for it
    whatever it reads for any other. A row that was swallowed is 0 or NaN in every channel, so one channel tells.
    """
    mix = mix.detach() if mix.requires_grad else mix
    if mix.numel() <= SMALL:
        return math.isfinite(mix.reciprocal().sum().item())
    if masked and not is_finite(mix.select(-2, -1) if flagged else mix):
        return False
    return math.isfinite(mix.select(-1, 0).reciprocal().sum().item())


def is_bounded(q: Tensor, k: Tensor, scale: float) -> bool:
    """Whether every score is finite for certain: d · max |q| · max |k|."""
    if not q.numel() or not k.numel():
        return True
    top = [greatest(x.detach()) for x in (q, k)]
    limit = torch.finfo(torch.promote_types(q.dtype, torch.float32)).max
    return q.shape[-1] * top[0] * top[1] * max(1.0, abs(scale)) < limit


def greatest(x: Tensor) -> float:
    """max |x|; NaN where there is one. `linalg.vector_norm(x, inf)` takes ten times as long."""
    low, high = x.amin().item(), x.amax().item()
    return high if high != high or high > -low else -low


def is_harmless(q: Tensor, k: Tensor, v: Tensor, scale: float, masked: bool) -> bool:
    """Whether no kernel can have gone wrong over these: every score is finite, and so is whatever a mask may hide."""
    return is_bounded(q, k, scale) and (not masked or is_finite(v))


def needs_care(mix: Float[Tensor, "*_b q e"], computed: Computed, v: Tensor, flagged: bool) -> bool:
    """Whether a kernel's mix may be wrong where something is not finite."""
    masked = computed.mask is not None
    if looks_sound(mix, masked, flagged):
        return False
    if computed.bias is not None and not computed.bias_at(slice(None), slice(None)).detach().amax().item() < math.inf:
        return True
    return not is_harmless(computed.q, computed.k, v, computed.scale, masked)


def expose(computed: Computed) -> Computed:
    """The same map, with NaN in the queries all of whose scores are −inf by themselves: softmax of them is 0 / 0.

    A weigher cannot tell them from rows that a mask or a bias hides, which are 0.
    """
    if not computed.is_softmax or not computed.is_dot or computed.sink is not None:
        return computed
    if is_bounded(computed.q, computed.k, computed.scale):
        return computed
    bare = computed.without_bias()
    *lead, q, k = computed.shape
    height = max(16, BUDGET // max(1, k * math.prod(lead)))
    lost = torch.cat([lost_rows(bare, slice(i, min(q, i + height))) for i in range(0, q, height)], -1)  # *b q
    if not lost.any():
        return computed
    # What a batch shares may be lost in one of its entries.
    every = computed.q.expand(*lost.shape, computed.q.shape[-1])
    return computed.with_qk(every.masked_fill(lost.unsqueeze(-1), math.nan), computed.k)


def lost_rows(computed: Computed, rows: slice) -> Tensor:
    """Which of these queries see keys, and score −inf with every one; *b r."""
    low, allowed = computed.scores(rows).detach() == -math.inf, computed.allowed(rows)
    if allowed is None:
        return low.all(-1)
    allowed = allowed.expand(low.shape)
    return (low | ~allowed).all(-1) & allowed.any(-1)
