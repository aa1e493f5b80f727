"""Attention that drops weights, as every step of training calls it: product, softmax, what is kept, product.

No kernel of PyTorch's drops weights on a processor, and stage by stage every stage is written down, masked and
differentiated on its own. Here the usual case has its gradient written out. Whatever is unusual gets None, and
`attend` goes stage by stage.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.finite import is_finite
from regard.attention.map import Computed, DropoutRecord
from regard.attention.weigh.dropout import draw_kept
from regard.eager import has_tangent, plain


def attend_dropping(computed: Computed, v: Tensor, dropped: DropoutRecord) -> Float[Tensor, "b h q e"] | None:
    """The mix, or None where the call is not a usual one: softmax of the scaled product, four axes, equal heads."""
    q, k = computed.q, computed.k
    if dropped.seed is None or not 0.0 < dropped.p < 1.0 or not plain(q, k, v) or not q.is_cpu:
        return None
    if not computed.is_softmax or not computed.is_dot:
        return None
    if computed.bias is not None or computed.softcap is not None or computed.sink is not None:
        return None
    if q.dim() != 4 or k.shape[:3] != v.shape[:3] or q.shape[:2] != k.shape[:2] or q.dtype != computed.dtype:
        return None
    if not q.numel() or not k.numel() or not v.numel() or has_tangent(q, k, v):
        return None
    allowed = computed.allowed()
    added = None if allowed is None else q.new_zeros(allowed.shape).masked_fill_(~allowed, -math.inf)
    mix = DroppedSoftmax.apply(q, k, v, added, computed.scale, dropped)
    # Not finite: a query that sees nothing, or something hidden that is not finite itself and must not be let through.
    return mix if added is None or is_finite(mix) else None


class DroppedSoftmax(torch.autograd.Function):
    """mix = (softmax(scale · q kᵀ + added) ∘ kept) v, with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, added: Tensor | None, scale: float, dropped: DropoutRecord
    ) -> Float[Tensor, "b h q e"]:
        fq, fk, fv = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)  # bh t d: bmm wants one stride for both
        scores = torch.bmm(fq, fk.mT).unflatten(0, q.shape[:2])  # b h q k
        scores = scores.mul_(scale) if added is None else torch.add(added, scores, alpha=scale, out=scores)
        weights = torch.softmax(scores, -1, out=scores)
        keep = draw_kept(weights.shape, dropped.p, dtype=q.dtype, device=q.device, seed=dropped.seed)
        ctx.save_for_backward(q, k, v, fq, fk, fv, added, weights, keep)
        ctx.scale = scale
        return torch.bmm((weights * keep).flatten(0, 1), fv).unflatten(0, q.shape[:2])

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, fq, fk, fv, added, weights, keep = ctx.saved_tensors
        lead = q.shape[:2]
        if torch.is_grad_enabled():  # to be differentiated again: by the plain formula, which autograd can follow
            scores = (q * ctx.scale) @ k.mT
            mix = (torch.softmax(scores if added is None else scores + added, -1) * keep) @ v
            computed = [x for x in (q, k, v) if x.requires_grad]
            found = iter(torch.autograd.grad(mix, computed, given, create_graph=True))
            return *(next(found) if x.requires_grad else None for x in (q, k, v)), None, None, None
        flat = given.flatten(0, 1)  # bh q e
        into_v = torch.bmm((weights * keep).flatten(0, 1).mT, flat).unflatten(0, lead)
        into_weights = torch.bmm(flat, fv.mT).unflatten(0, lead).mul_(keep)  # b h q k
        into_scores = torch._softmax_backward_data(into_weights, weights, -1, weights.dtype).mul_(ctx.scale)
        into_q = torch.bmm(into_scores.flatten(0, 1), fk).unflatten(0, lead)
        into_k = torch.bmm(into_scores.flatten(0, 1).mT, fq).unflatten(0, lead)
        return into_q, into_k, into_v, None, None, None
