"""What a model that looks by glimpses learns from: its class by gradient, where to look by reward (REINFORCE)."""

from jaxtyping import Float, Int
from torch import Tensor

from regard.models.glimpse import GlimpsePath


def reward_locations(path: GlimpsePath, labels: Int[Tensor, " b"], weight: float) -> Float[Tensor, ""]:
    r"""The loss of locations and baselines, summed over pictures; labels below 0 do not count.

    The reward R is 1 where the class is right, else 0. Locations: $-\sum_t \log \pi(l_t)\,(R - b_t)$ times `weight`,
    the policy gradient with a baseline (Williams 1992; Mnih et al. 2014, eq. 3); baselines: $\sum_t (R - b_t)^2 / T$.
    No gradient flows from the first into the baselines.
    """
    counts = (labels >= 0).to(path.log_probs.dtype)
    reward = (path.logits.detach().argmax(-1) == labels).to(path.log_probs.dtype)[:, None]
    chosen = slice(1, None)  # the first location was nobody's choice
    baselines = path.baselines[:, chosen]
    if not baselines.shape[1]:
        return counts.sum() * 0.0
    advantage = reward - baselines.detach()
    locations = -(path.log_probs[:, chosen] * advantage).sum(1)
    return (counts * (weight * locations + (reward - baselines).square().mean(1))).sum()
