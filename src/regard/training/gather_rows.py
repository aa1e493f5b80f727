"""Rows of all processes as one tensor, through which gradients go back to the process that each row came from."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather_rows(rows: Tensor) -> tuple[Tensor, int]:
    """The rows (n, …) of all processes below each other, in the order of their ranks, and where our own begin.

    All processes must ask. The gradient of a row is the sum of what all processes make of it. Alone, they come back.

    >>> gather_rows(torch.ones(3, 2))[1]
    0
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows, 0
    counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor([len(rows)], device=rows.device))
    sizes = [int(one) for one in counts]
    return GatheredRows.apply(rows, sizes), sum(sizes[: dist.get_rank()])


class GatheredRows(torch.autograd.Function):
    """Gather; backward, add up what all processes made of all rows, and take one's own."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, sizes: list[int]) -> Tensor:
        first = sum(sizes[: dist.get_rank()])
        ctx.own = slice(first, first + len(rows))
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        every = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(every, padded)
        return torch.cat([one[:size] for one, size in zip(every, sizes)])

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, None]:
        total = given[0].contiguous().clone()
        dist.all_reduce(total)
        return total[ctx.own], None
