"""The loss of a task as a module, and the random numbers of one step."""

from typing import Any

from torch import Tensor, nn

from regard.training.task import PreparedTask


class LossModule(nn.Module):
    """The loss as a module, so that what wraps modules (DDP, FSDP, a compiler) wraps all of it."""

    def __init__(self, model: nn.Module, prepared: PreparedTask) -> None:
        super().__init__()
        self.model = model
        self.prepared = prepared

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        found = self.prepared.loss(self.model, batch)
        return found.sum, found.nll


def seed_of(seed: int, step: int, rank: int) -> int:
    """One number for the dropout of one step in one process.

    >>> seed_of(0, 1, 0) != seed_of(0, 0, 1) != seed_of(1, 0, 0)
    True
    """
    return (seed * 1_000_003 + step) * 1_009 + rank


def size_of(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
