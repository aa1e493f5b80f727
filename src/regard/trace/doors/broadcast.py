"""One batch for q, k and v, as a kernel broadcasts them: learned queries may serve every entry of a batch."""

from torch import Tensor


def share_batch(*xs: Tensor) -> tuple[Tensor, ...]:
    """The same tensors, (b, h, n, d), each with the largest batch among them; nothing is copied.

    >>> import torch
    >>> [tuple(x.shape) for x in share_batch(torch.zeros(1, 2, 3, 4), torch.zeros(5, 2, 6, 4))]
    [(5, 2, 3, 4), (5, 2, 6, 4)]
    """
    batch = max(x.shape[0] for x in xs)
    return tuple(x if x.shape[0] == batch or x.shape[0] != 1 else x.expand(batch, -1, -1, -1) for x in xs)
