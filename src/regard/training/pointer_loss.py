"""What a model's words cost that may be copied: the loss of a mixture, and its gradients in the same few passes.

As in `loss.py` a chunk of logits is made, turned into its own gradient in place, and written over by the next one. What
is known of the source is as long as the source, never as long as the vocabulary.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ConfigError, PathError
from regard.models.pointer_generator import Mixture
from regard.models.pointer_mixture import group_tokens, sum_copies
from regard.training.loss import CHUNK, DEEPEST, Loss, must_be_known


def pointer_loss(
    mixture: Mixture,
    weight: Float[Tensor, "n m"],
    source: Int[Tensor, "b s"],
    targets: Int[Tensor, "b t"],
    *,
    smoothing: float | int = 0.0,
    coverage: float | int = 0.0,
    pad: int = 0,
) -> Loss:
    r"""Sum the cross-entropy of a `Mixture` and labels that are nearly sure, and what is copied twice.

    $-(1-s) \log p_y - \frac{s}{n} \sum_j \log p_j + \lambda \sum_i \min(a_{t,i}, c_{t,i})$ for each target y that is
    not `pad`, with p of the mixture (See, Liu & Manning 2017, eq. 9), s the `smoothing`, and λ = `coverage` (eq. 12 and
    13). `weight` is that of the head, `source` the ids that were read. `nll` of what comes back is $-\log p_y$ alone.

    Gradients are computed here, not in the backward pass; there is no second derivative.

    >>> from regard.models import PointerGeneratorConfig
    >>> model = PointerGeneratorConfig(13, 13, width=8, heads=2, layers=1).build()
    >>> source, target = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[5, 6, 2], [7, 2, 0]])
    >>> fed = torch.tensor([[1, 5, 6], [1, 7, 0]])
    >>> loss = pointer_loss(model.mix(source, fed), model.head_weight, source, target)
    >>> wanted = model(source, fed).gather(2, target[..., None]).squeeze(-1)[target != 0]
    >>> loss.count, torch.allclose(loss.sum, -wanted.sum())
    (5, True)
    """
    if not 0.0 <= smoothing <= 1.0 or coverage < 0.0:
        raise ConfigError(
            f"smoothing is {smoothing} and coverage {coverage}; give a share from 0 to 1, and a weight of 0 or more"
        )
    counted = targets != pad  # b t
    row = counted.nonzero()[:, 0]  # the text of each token that counts
    said = targets[counted]
    must_be_known(said, len(weight))
    copies = sum_copies(mixture.copy[counted], group_tokens(source)[row])  # r s
    total, nll = MixtureCrossEntropy.apply(
        mixture.hidden[counted], weight, mixture.gate[counted], copies, source[row], said, float(smoothing)
    )
    if coverage and mixture.coverage is not None:
        twice = torch.minimum(mixture.copy, mixture.coverage).sum(-1)  # b t
        total = total + coverage * twice[counted].sum()
    return Loss(total, len(said), nll)


class MixtureCrossEntropy(torch.autograd.Function):
    """The smoothed loss of some rows, and the sum of -log p_y; gradients are ready when backward asks."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, gate: Tensor, copies: Tensor, source: Tensor, said: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        sums = through_chunks(x, w, gate, copies, source, said, smoothing, any(ctx.needs_input_grad))
        ctx.save_for_backward(sums.into_x, sums.into_w, sums.into_gate, sums.into_copies)
        ctx.mark_non_differentiable(sums.nll)
        return sums.total, sums.nll

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph=True
            raise PathError("pointer_loss has no second derivative; leave create_graph=True out")
        return *(g * given[0] for g in ctx.saved_tensors), None, None, None


class MixtureSums(NamedTuple):
    """What one way through the chunks makes: two sums, and the gradients of the first."""

    total: Tensor
    nll: Tensor
    into_x: Tensor  # r m
    into_w: Tensor  # n m
    into_gate: Tensor  # r
    into_copies: Tensor  # r s


def through_chunks(
    x: Tensor, w: Tensor, gate: Tensor, copies: Tensor, source: Tensor, said: Tensor, smoothing: float, wanted: bool
) -> MixtureSums:
    r"""Loss and gradients, some rows at a time, all in one buffer.

    With $u_j = g v_j / p_j$, the share of $p_j$ that is generated, v the softmax of the logits z and γ the gate,
    $\partial \log p_j / \partial z_k = u_j (\delta_{jk} - v_k)$, $\partial \log p_j / \partial \gamma = u_j - g$, and
    that of what is copied is $(1 - g) / p_j$. A token that is not in the source has u = 1, which needs no sum.
    """
    n, count = len(w), len(x)
    into_x, into_w = torch.zeros_like(x), torch.zeros_like(w)
    into_gate, into_copies = torch.zeros_like(gate), torch.zeros_like(copies)
    nll, spread = x.new_zeros(count), x.new_zeros(count)
    log_g, log_rest = F.logsigmoid(gate)[:, None], F.logsigmoid(-gate)[:, None]  # r 1
    mean_w = w.mean(0)  # m
    pieces = -(-count // max(64, CHUNK // n))
    size = -(-count // pieces) if pieces else 0
    buffer = x.new_empty(size, n)
    for first in range(0, count, max(1, size)):
        at = slice(first, min(first + size, count))
        some, to, ids = x[at], said[at, None], source[at]  # c m, c 1, c s
        z = torch.mm(some, w.t(), out=buffer[: len(some)])  # c n
        top = z.amax(1, keepdim=True)
        right, here = z.gather(1, to) - top, z.gather(1, ids) - top  # c 1, c s
        powers = z.sub_(top).clamp_(min=DEEPEST).exp_()  # c n, still to be divided by their sum
        whole = powers.sum(1, keepdim=True)
        log_whole = whole.log()
        is_said = ids == to  # c s
        said_copies = (copies[at] * is_said).sum(1, keepdim=True)  # c 1
        y = mix(log_g[at] + right - log_whole, log_rest[at], said_copies)
        nll[at] = -y.log_p.squeeze(1)
        shares = 1.0 - smoothing
        generated = shares * y.generated  # what the loss says about z, but for its sign: c 1
        into_copies[at] = -shares * y.per_copy * is_said
        into_gate[at] = -(shares * (y.generated - log_g[at].exp())).squeeze(1)
        if smoothing:
            each = mix(
                log_g[at] + here - log_whole, log_rest[at], copies[at]
            )  # c s; as generated where nothing is copied
            copied = 1.0 - each.generated  # c s, 0 but at the first place of each token
            logits_mean = some @ mean_w  # c
            spread[at] = -(log_g[at] - log_whole - top).squeeze(1) - logits_mean - each.gained.sum(1) / n
            all_generated = n - copied.sum(1, keepdim=True)  # Σ u_j
            into_copies[at] -= smoothing / n * each.per_copy
            into_gate[at] -= smoothing * (all_generated / n - log_g[at].exp()).squeeze(1)
        if not wanted:
            continue
        slope = generated + (smoothing / n * all_generated if smoothing else 0.0)  # c 1, before the softmax
        # The gradient of z is slope · softmax(z) − generated at y − s/n · u; all but the last constant s/n stands here.
        powers.mul_(slope / whole)
        powers.scatter_add_(1, to, -generated)
        if smoothing:
            powers.scatter_add_(1, ids, smoothing / n * copied)
        torch.mm(powers, w, out=into_x[at])
        into_w.addmm_(powers.t(), some)
        if smoothing:
            into_x[at].sub_(mean_w, alpha=smoothing)
    if smoothing and wanted:
        into_w.sub_(x.sum(0), alpha=smoothing / n)
    nll_sum = nll.sum()
    total = torch.lerp(nll_sum, spread.sum(), smoothing) if smoothing else nll_sum.clone()
    return MixtureSums(total, nll_sum, into_x, into_w, into_gate, into_copies)


class TokenMixture(NamedTuple):
    """Of some tokens: their log-probability, the share of it that is generated, and what a little more copying adds."""

    log_p: Tensor
    generated: Tensor  # u = g v / p
    per_copy: Tensor  # (1 − g) / p
    gained: Tensor  # log p − log (g v)


def mix(log_generated: Tensor, log_rest: Tensor, copies: Tensor) -> TokenMixture:
    """Tokens of which so much is generated and copied; `log_generated` is log g v, `log_rest` log (1 − g)."""
    log_p = torch.logaddexp(log_generated, log_rest + copies.log())
    per_copy = (log_rest - log_p).clamp(max=-DEEPEST).exp()  # else it could overflow where nothing is likely
    gained = log_p - log_generated
    return TokenMixture(log_p, (-gained).exp(), per_copy, gained)
