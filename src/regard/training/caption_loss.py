"""What captions cost: their words, looking at every part of a picture alike, and where hard attention looked."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.captioner import Captioner, WrittenSteps
from regard.training.loss import Loss, smoothed_loss

KEPT = 0.9  # of the expected reward, when a batch brings a new one


def caption_loss(
    model: Captioner,
    pictures: Float[Tensor, "b c y x"],
    fed: Int[Tensor, "b t"],
    targets: Int[Tensor, "b t"],
    *,
    smoothing: float | int = 0.0,
    coverage: float | int = 0.0,
    reward: float | int = 0.0,
    entropy: float | int = 0.0,
) -> Loss:
    r"""Sum the cross-entropy of captions, and of each picture $\lambda \sum_i (1 - \sum_t \alpha_{ti})^2$.

    The second is doubly stochastic regularisation with λ = `coverage` (Xu et al. 2015, eq. 14). Hard attention learns
    where to look by `reward` (ibid., eqs. 11-12; Williams 1992): $-\lambda_r (R - b) \sum_t \log \alpha_{t, s_t} -
    \lambda_e \sum_t H(\alpha_t)$ with R the log-likelihood of the caption, b its moving average (`model.baseline`,
    which a call in training moves on), and $\lambda_e$ = `entropy`. `nll` is that of the words alone.

    >>> from regard.models.captioner_config import CaptionerConfig
    >>> model = CaptionerConfig(8, 12, vocab_size=13, features=(8, 12), strides=(2, 2), width=16).build()
    >>> fed, targets = torch.tensor([[1, 5, 6]]), torch.tensor([[5, 6, 2]])
    >>> loss = caption_loss(model, torch.ones(1, 3, 8, 12), fed, targets, coverage=1.0)
    >>> loss.count, bool(loss.sum > loss.nll)
    (3, True)
    """
    steps = model.write(pictures, fed, details=bool(coverage) or model.config.attention == "hard")
    pad = model.config.pad
    loss = smoothed_loss(steps.hidden, model.head_weight, model.head_bias, targets, smoothing=smoothing, pad=pad)
    counts = (targets != pad).to(steps.hidden.dtype)  # b t
    total, there = loss.sum, counts.amax(1)  # a row of padding is no picture
    if coverage and steps.weights is not None:
        seen = (steps.weights * counts[:, :, None]).sum(1)  # b s
        total = total + coverage * ((1 - seen).square().sum(1) * there).sum()
    if steps.log_probs is not None and steps.entropies is not None:
        advantage = expect_reward(model, steps, targets, there)
        looked = (steps.log_probs * counts).sum(1)
        total = total - reward * (advantage * looked).sum() - entropy * (steps.entropies * counts).sum()
    return loss._replace(sum=total)


@torch.no_grad()
def expect_reward(
    model: Captioner, steps: WrittenSteps, targets: Int[Tensor, "b t"], there: Float[Tensor, " b"]
) -> Float[Tensor, " b"]:
    """How much better each caption was than expected; in training the expectation follows."""
    logits = F.linear(steps.hidden, model.head_weight, model.head_bias)
    rewards = -F.cross_entropy(logits.mT, targets, ignore_index=model.config.pad, reduction="none").sum(1)
    advantage = rewards - model.baseline
    if model.training and bool(there.any()):
        model.baseline.mul_(KEPT).add_((rewards * there).sum() / there.sum(), alpha=1 - KEPT)
    return advantage
