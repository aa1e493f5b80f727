"""Which tokens may be drawn: the others become −∞. Each equals the `LogitsWarper` of that name in `transformers`."""

import torch
from torch import Tensor


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """The k likeliest of every row, and what is exactly as likely as the last of them (Fan et al. 2018, §5.1).

    >>> import torch
    >>> keep_top_k(torch.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[-inf, 3., 2.]])
    """
    least = logits.topk(min(k, logits.shape[-1]), -1).values[:, -1:]
    return logits.masked_fill(logits < least, -torch.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """The fewest likeliest tokens that together reach probability p, at least one (Holtzman et al. 2020, eq. 2).

    >>> import torch
    >>> keep_top_p(torch.tensor([[0.2, 0.5, 0.3]]).log(), 0.6).exp()
    tensor([[0.0000, 0.5000, 0.3000]])
    """
    ascending, ids = logits.sort(dim=-1, stable=True)
    below = ascending.softmax(-1).cumsum(-1) <= 1 - p  # all that is no likelier than this adds up to too little
    below[:, -1] = False
    return logits.masked_fill(below.scatter(-1, ids, below), -torch.inf)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """What is at least p times as likely as the likeliest (Nguyen et al. 2024, §3).

    >>> import torch
    >>> keep_min_p(torch.tensor([[0.2, 0.5, 0.3]]).log(), 0.5).exp()
    tensor([[0.0000, 0.5000, 0.3000]])
    """
    chances = logits.softmax(-1)
    return logits.masked_fill(chances < p * chances.amax(-1, keepdim=True), -torch.inf)
