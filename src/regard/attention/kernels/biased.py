"""Attention under a bias that learns, as training with relative positions calls it: product, bias, softmax, product.

No kernel of PyTorch's gives a bias its gradient, and stage by stage every stage is written down and differentiated on
its own. Here the usual case has its gradient written out. Whatever is unusual gets None, and `attend` goes stage by
stage.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.finite import is_finite
from regard.attention.map import Computed
from regard.eager import has_tangent, plain


def attend_biased(computed: Computed, v: Tensor) -> Float[Tensor, "b h q e"] | None:
    """The mix, or None where the call is not a usual one: softmax of product and bias, four axes, equal heads."""
    q, k = computed.q, computed.k
    if computed.bias is None or not plain(q, k, v) or not q.is_cpu or not computed.is_softmax or not computed.is_dot:
        return None
    if computed.softcap is not None or computed.sink is not None:
        return None
    if q.dim() != 4 or k.shape[:3] != v.shape[:3] or q.shape[:2] != k.shape[:2] or q.dtype != computed.dtype:
        return None
    bias = computed.bias_at(slice(None), slice(None))
    if not q.numel() or not k.numel() or not v.numel() or bias.dim() != 4 or has_tangent(q, k, v, bias):
        return None
    allowed = computed.allowed()
    mix = BiasedSoftmax.apply(q, k, v, bias.to(q.dtype), None if allowed is None else ~allowed, computed.scale)
    # Not finite: a query that sees nothing, or something hidden that is not finite itself and must not be let through.
    return mix if is_finite(mix) else None


class BiasedSoftmax(torch.autograd.Function):
    """mix = softmax(scale · q kᵀ + bias, −∞ where hidden) v, with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, hidden: Tensor | None, scale: float
    ) -> Float[Tensor, "b h q e"]:
        fq, fk, fv = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)  # bh t d: bmm wants one stride for both
        scores = torch.bmm(fq, fk.mT).unflatten(0, q.shape[:2])  # b h q k
        torch.add(bias, scores, alpha=scale, out=scores)
        if hidden is not None:
            scores.masked_fill_(hidden, -math.inf)
        weights = torch.softmax(scores, -1, out=scores)
        ctx.save_for_backward(q, k, v, fq, fk, fv, bias, hidden, weights)
        ctx.scale = scale
        return torch.bmm(weights.flatten(0, 1), fv).unflatten(0, q.shape[:2])

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, fq, fk, fv, bias, hidden, weights = ctx.saved_tensors
        lead = q.shape[:2]
        if torch.is_grad_enabled():  # to be differentiated again: by the plain formula, which autograd can follow
            scores = (q * ctx.scale) @ k.mT + bias
            scores = scores if hidden is None else scores.masked_fill(hidden, -math.inf)
            computed = [x for x in (q, k, v, bias) if x.requires_grad]
            found = iter(torch.autograd.grad(torch.softmax(scores, -1) @ v, computed, given, create_graph=True))
            return *(next(found) if x.requires_grad else None for x in (q, k, v, bias)), None, None
        flat = given.flatten(0, 1)  # bh q e
        into_v = torch.bmm(weights.flatten(0, 1).mT, flat).unflatten(0, lead)
        into_weights = torch.bmm(flat, fv.mT).unflatten(0, lead)  # b h q k
        into_scores = torch._softmax_backward_data(into_weights, weights, -1, weights.dtype)
        into_bias = into_scores.sum_to_size(bias.shape) if ctx.needs_input_grad[3] else None
        into_q = torch.bmm(into_scores.flatten(0, 1), fk).mul_(ctx.scale).unflatten(0, lead)
        into_k = torch.bmm(into_scores.flatten(0, 1).mT, fq).mul_(ctx.scale).unflatten(0, lead)
        return into_q, into_k, into_v, into_bias, None, None
