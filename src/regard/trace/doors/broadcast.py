"""One batch for q, k and v, as a kernel broadcasts them: learned queries may serve every entry of a batch."""

from torch import Tensor


def find_lead(query: Tensor, *others: Tensor) -> tuple[int, ...]:
    """The axes before the last two that come out of a kernel: those of the query, with the largest batch of four axes.

    >>> import torch
    >>> find_lead(torch.zeros(1, 2, 3, 4), torch.zeros(5, 2, 6, 4))
    (5, 2)
    """
    lead = tuple(query.shape[:-2])
    if len(lead) != 2:
        return lead
    return max(lead[0], *(x.shape[0] for x in others if x.ndim == query.ndim)), lead[1]


def share_batch(*xs: Tensor) -> tuple[Tensor, ...]:
    """The same tensors, (b, h, n, d), each with the largest batch among them; nothing is copied.

    >>> import torch
    >>> [tuple(x.shape) for x in share_batch(torch.zeros(1, 2, 3, 4), torch.zeros(5, 2, 6, 4))]
    [(5, 2, 3, 4), (5, 2, 6, 4)]
    """
    if any(x.is_nested for x in xs):
        return xs
    batch = max(x.shape[0] for x in xs)
    return tuple(x if x.shape[0] == batch or x.shape[0] != 1 else x.expand(batch, -1, -1, -1) for x in xs)
