"""The usual call by the shortest way, because at n = 16 a kernel takes no longer than a dozen lines of Python.

Softmax of the scaled product, plain CPU tensors of four axes that fit each other, eager mode, and a mask that needs
no thought. Whatever is unusual gets None here, and `attend` looks at it properly: this file decides nothing, it only
skips questions whose answers are known.
"""

import math

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.kernels.finite import is_harmless, looks_sound
from regard.attention.kernels.fused import SLICED_FROM, forbid_second_derivative
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask.base import Mask
from regard.attention.mask.causal import Causal
from regard.eager import is_transformed


def attend_usual(q: Tensor, k: Tensor, v: Tensor, mask: object) -> tuple[Tensor, AttentionMap] | None:
    """The mix and its map, or None where the call is not a usual one."""
    if type(q) is not Tensor or type(k) is not Tensor or type(v) is not Tensor or not q.is_cpu or q.is_nested:
        return None
    if (
        k.is_nested
        or v.is_nested
        or torch.compiler.is_compiling()
        or is_transformed()
        or forward_ad._current_level >= 0
    ):
        return None
    qs, ks = q.shape, k.shape
    if len(qs) != 4 or ks != v.shape:
        return None
    if qs != ks and (qs[0] != ks[0] or qs[3] != ks[3] or (qs[1] != ks[1] and (not ks[1] or qs[1] % ks[1]))):
        return None
    if q.dtype is not k.dtype or k.dtype is not v.dtype or not k.is_cpu or not v.is_cpu or not q.is_floating_point():
        return None
    if 0 in qs or 0 in ks or q.stride(3) != 1 or k.stride(3) != 1 or v.stride(3) != 1:
        return None
    if torch.is_autocast_enabled("cpu"):
        return None
    sizes = Sizes((qs[0], qs[1]), qs[2], ks[2])
    grouped = qs[1] != ks[1]
    scale, masked, flagged = 1.0 / math.sqrt(qs[3]), mask is not None, False
    if mask is None:
        mix = F.scaled_dot_product_attention(q, k, v, enable_gqa=grouped)
    elif type(mask) is Causal and (qs[2] == ks[2] or mask.align == "first"):
        mix, flagged = F.scaled_dot_product_attention(q, k, v, None, 0.0, True, enable_gqa=grouped), True
    elif type(mask) is Causal and qs[2] == 1:  # the last query sees everything
        mix, masked = F.scaled_dot_product_attention(q, k, v, enable_gqa=grouped), False
    elif isinstance(mask, Mask) and mask.memo is not None and mask.memo[0] == sizes and ks[2] < SLICED_FROM:
        mix = F.scaled_dot_product_attention(q, k, v, mask.memo[1], enable_gqa=grouped)
    else:
        return None
    if mix.requires_grad:
        forbid_second_derivative(mix)
    if not looks_sound(mix, masked, flagged) and not is_harmless(q, k, v, scale, masked):
        return None
    return mix, AttentionMap(Computed(q, k, sizes, scale=scale, mask=mask))
