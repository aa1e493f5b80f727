"""What is generated and what is copied, as one probability of each token of the vocabulary."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def group_tokens(source: Int[Tensor, "b s"]) -> Int[Tensor, "b s"]:
    """For each position of a source the first one that holds the same id.

    >>> group_tokens(torch.tensor([[7, 5, 7, 2], [5, 5, 2, 0]]))
    tensor([[0, 1, 0, 3],
            [0, 0, 2, 3]])
    """
    if not source.numel():
        return source
    places = torch.arange(source.shape[1], device=source.device).expand_as(source)
    first = places.new_zeros(len(source), int(source.max()) + 1)
    return first.scatter_reduce(1, source, places, "amin", include_self=False).gather(1, source)


def sum_copies(copy: Float[Tensor, "*b s"], group: Int[Tensor, "*b s"]) -> Float[Tensor, "*b s"]:
    """Copy weights added up by token, at the first position of each; 0 at the others.

    >>> sum_copies(torch.tensor([0.25, 0.25, 0.5]), torch.tensor([0, 1, 0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return torch.zeros_like(copy).scatter_add(-1, group, copy)


def mix_log_probs(
    logits: Float[Tensor, "b t n"],
    gate: Float[Tensor, "b t"],
    copy: Float[Tensor, "b t s"],
    source: Int[Tensor, "b s"],
    group: Int[Tensor, "b s"] | None = None,
) -> Float[Tensor, "b t n"]:
    r"""$\log p$ with $p_j = g\, \mathrm{softmax}(z)_j + (1 - g) \sum_{i: x_i = j} a_i$ (See et al. 2017, eq. 9).

    z are the `logits`, $g = \sigma(\mathrm{gate})$, a the `copy` weights of the source positions, x the ids of the
    `source`. They add up to 1, so that log p are logits, too. Computed in logarithms: a token that is not in the
    source keeps its digits however small g is. `group` is that of `group_tokens`, where it is known.

    >>> copy, source = torch.tensor([[[0.75, 0.25]]]), torch.tensor([[3, 1]])
    >>> mix_log_probs(torch.zeros(1, 1, 4), torch.zeros(1, 1), copy, source).exp()
    tensor([[[0.1250, 0.2500, 0.1250, 0.5000]]])
    """
    group = group_tokens(source) if group is None else group
    ids, group = (x[:, None].expand(copy.shape) for x in (source, group))  # b t s
    log_probs = logits.log_softmax(-1) + F.logsigmoid(gate)[..., None]
    copies = sum_copies(copy.to(log_probs.dtype), group)
    there = copies > 0
    generated = log_probs.gather(-1, ids)
    # Where nothing is copied, any number will do under the logarithm: neither it nor its gradient is used.
    from_source = F.logsigmoid(-gate)[..., None] + torch.where(there, copies, 1.0).log()
    gained = torch.where(there, torch.logaddexp(generated, from_source) - generated, 0.0)
    return log_probs.scatter_add(-1, ids, gained)
