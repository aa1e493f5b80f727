"""Which rows of a call are copied while it runs, so that its map can be verified."""

from functools import cache

import torch
from torch import Tensor

SAMPLED = 4


@cache
def sample_rows(length: int, count: int) -> Tensor:
    """A few rows over the whole length, the first and the last among them."""
    with torch.inference_mode(False):
        return torch.tensor(row_numbers(length, count), dtype=torch.long)


@cache
def row_numbers(length: int, count: int) -> tuple[int, ...]:
    """The same as plain numbers."""
    if length <= count:
        return tuple(range(length))
    return tuple(sorted({round(i * (length - 1) / (count - 1)) for i in range(count)}))
