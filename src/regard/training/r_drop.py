"""R-Drop: a model reads each batch twice, with other dropout, and is held to say the same both times.

As in `training/loss.py`, a chunk of rows of both passes is made, turned into its own gradient in place and written over
by the next chunk; the logits of a batch are never held.
"""

import math
from functools import partial

import torch
from torch import Tensor

from regard.errors import ConfigError, ShapeError
from regard.training.loss import (
    DEEPEST,
    ChunkSums,
    Loss,
    check,
    choose_chunk,
    compute_fused,
    find_words,
)


def r_drop_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    alpha: float | int,
    smoothing: float | int = 0.1,
    pad: int = 0,
    chunk: int | None = None,
) -> Loss:
    r"""Sum half of the loss of R-Drop over two passes (Wu et al. 2021, eq. 4), whose labels may be smoothed.

    $\frac12 (\ell_1 + \ell_2) + \frac{\alpha}{2} \cdot \frac12 (\mathrm{KL}(p_1 \| p_2) + \mathrm{KL}(p_2 \| p_1))$ for
    each target that is not `pad`, with $\ell_i$ the loss that `smoothed_loss` gives pass i, and its softmax $p_i$. It
    is half of what the paper writes, so that α means the same, and a loss and the norm of a gradient stay what they are
    without R-Drop: two passes that agree give what one gives. `nll` is the mean of both passes.

    `hidden` is (2, …, m), the two passes, and `targets` (…); `weight`, `bias` and `chunk` are those of `smoothed_loss`.
    A batch of padding alone costs 0. There is no second derivative.

    >>> once, weight, targets = torch.eye(3), torch.eye(3), torch.tensor([2, 1, 0])
    >>> loss = r_drop_loss(torch.stack([once, once]), weight, None, targets, alpha=5)
    >>> loss.count, round(loss.sum.item(), 4)  # what both passes say is what one says
    (2, 2.1362)
    >>> round(r_drop_loss(torch.stack([once, 2 * once]), weight, None, targets, alpha=5).sum.item(), 4)
    2.8682
    """
    if hidden.shape[:1] != (2,):
        raise ShapeError(f"hidden has shape {tuple(hidden.shape)}, wanted (2, …, m); give both passes as one tensor")
    check(hidden[0], weight, bias, targets, smoothing, chunk)
    if not 0.0 <= alpha < math.inf:
        raise ConfigError(f"alpha is {alpha}, but it weighs how far two passes differ; give 0 or more")
    rows, said = find_words(targets, len(weight), pad)
    size = choose_chunk(weight, 4) if chunk is None else chunk
    through = partial(through_pairs, said=said, smoothing=float(smoothing), alpha=float(alpha), chunk=size)
    both = torch.cat((rows, rows + targets.numel()))
    return compute_fused(hidden, weight, bias, None if len(rows) == targets.numel() else both, through, len(rows))


def through_pairs(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    *,
    said: Tensor,
    smoothing: float,
    alpha: float,
    chunk: int,
    wanted: list[bool],
) -> ChunkSums:
    r"""Loss and gradients of `chunk` words at a time, x (2 · t, m) being those of the first pass, then of the second.

    With $d = \log p_1 - \log p_2$ the gradient of $\mathrm{KL}(p_1 \| p_2) + \mathrm{KL}(p_2 \| p_1)$ by the logits of
    the first pass is $p_1 (d - \mathrm{KL}(p_1 \| p_2)) + p_1 - p_2$, and the same by those of the second with the
    passes exchanged.
    """
    n, count = len(w), len(said)
    into_x, into_w = (torch.zeros_like(like) if want else None for like, want in ((x, wanted[0]), (w, wanted[1])))
    into_b = x.new_zeros(n) if wanted[2] else None
    mean_w, mean_b = w.mean(0), 0.0 if b is None else b.mean()  # m
    nll, spread, apart = x.new_zeros(count), x.new_zeros(count), x.new_zeros(count)
    pieces = -(-count // chunk)
    size = -(-count // pieces) if pieces else 0
    logits, shares = x.new_empty(2 * size, n), x.new_empty(2 * size, n)
    halves, share = x.view(2, count, x.shape[1]), alpha / 2
    for first in range(0, count, max(1, size)):
        at = slice(first, min(first + size, count))
        some, to = halves[:, at].flatten(0, 1), said[at].repeat(2)[:, None]  # 2·c m, 2·c 1
        z, p = logits[: len(some)], shares[: len(some)]  # 2·c n
        if b is None:
            torch.mm(some, w.t(), out=z)
        else:
            torch.addmm(b, some, w.t(), out=z)
        top = z.amax(1, keepdim=True)
        torch.sub(z, top, out=p).clamp_(min=DEEPEST).exp_()
        whole = p.sum(1, keepdim=True)
        p.div_(whole)
        norm = top + whole.log()  # what a logit is less by as a log-probability
        nll[at] = (norm - z.gather(1, to)).view(2, -1).mean(0)
        spread[at] = (norm.squeeze(1) - some @ mean_w - mean_b).view(2, -1).mean(0)
        (z1, z2), (p1, p2), (norm1, norm2) = (both.chunk(2) for both in (z, p, norm))
        d = torch.sub(z1, z2, out=z2).sub_(norm1 - norm2)
        there = torch.mul(p1, d, out=z1).sum(1, keepdim=True)  # KL(p1 ‖ p2)
        back = d.mul_(p2).sum(1, keepdim=True).neg_()  # KL(p2 ‖ p1)
        apart[at] = (there + back).squeeze(1)
        if True not in wanted:
            continue
        z1.mul_(share).addcmul_(p1, 1 + share - share * there).sub_(p2, alpha=share)
        z2.mul_(-share).addcmul_(p2, 1 + share - share * back).sub_(p1, alpha=share)
        z.scatter_add_(1, to, torch.full_like(norm, smoothing - 1.0))
        if into_x is not None:
            into_x.view_as(halves)[:, at] = (z @ w).sub_(mean_w, alpha=smoothing).mul_(0.5).view(2, -1, x.shape[1])
        if into_w is not None:
            into_w.addmm_(z.t(), some, alpha=0.5)
        if into_b is not None:
            into_b.add_(z.sum(0), alpha=0.5)
    if into_w is not None:
        into_w.sub_(x.sum(0), alpha=0.5 * smoothing / n)
    if into_b is not None:
        into_b.sub_(count * smoothing / n)
    nll_sum = nll.sum()
    total = torch.lerp(nll_sum, spread.sum(), smoothing) + share / 2 * apart.sum()
    return ChunkSums(total, nll_sum, into_x, into_w, into_b)
