"""Batches on their way into the model, prepared here or by worker processes, always in the same order."""

import os
import signal
import threading
from collections.abc import Generator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from torch.utils.data import DataLoader, Dataset

from regard.training.distributed import ProcessGroup
from regard.training.settings import Settings
from regard.training.task import PreparedTask

GRACE = 10.0  # seconds that a worker goes on after SIGTERM


class Update(NamedTuple):
    """What this process computes of one update."""

    examples: np.ndarray  # all of them, over all processes
    weight: int  # what the sum of the loss is divided by, over all processes
    tokens: int  # that are read or written, over all processes
    parts: list[tuple[Any, bool]]  # tensors, and whether it is the last part


class Shares(Dataset[Update]):
    """One entry per update: the share of this process, in parts."""

    def __init__(
        self, prepared: PreparedTask, batches: Sequence[np.ndarray], group: ProcessGroup, accumulate: int
    ) -> None:
        self.prepared, self.batches, self.accumulate = prepared, batches, accumulate
        self.rank, self.world = group.rank, group.world

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, i: int) -> Update:
        indices, prepared = self.batches[i], self.prepared
        shares = prepared.parts(indices, self.accumulate * self.world)
        each = [[share for share in shares[rank :: self.world] if len(share)] for rank in range(self.world)]
        count = max(map(len, each))  # all processes compute equally often, some of them nothing
        mine = each[self.rank] + [indices[:0]] * (count - len(each[self.rank]))
        parts = [(prepared.collate(share), number == count - 1) for number, share in enumerate(mine)]
        return Update(indices, prepared.weight(indices), prepared.count_tokens(indices), parts)


def feed(
    prepared: PreparedTask, batches: Sequence[np.ndarray], group: ProcessGroup, settings: Settings
) -> Generator[Update, None, None]:
    """The updates in order. Workers end when it is closed."""
    shares = Shares(prepared, batches, group, settings.gradient_accumulation)
    if not settings.num_workers:
        yield from (shares[i] for i in range(len(shares)))
        return
    loaded = iter(
        DataLoader(shares, batch_size=None, num_workers=settings.num_workers, worker_init_fn=ignore_interrupts)
    )
    try:
        yield from loaded
    finally:
        end = getattr(loaded, "_shutdown_workers", None)  # they end with the loader, which a traceback may hold
        if end is not None:
            end()


def ignore_interrupts(worker: int) -> None:
    """Keep working through a signal that goes to all processes: the one that trains still needs batches to stop well.

    A worker ends when it is told to, when the process it works for is gone, or a while after SIGTERM.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, leave_later)


def leave_later(number: int, frame: FrameType | None) -> None:
    later = threading.Timer(GRACE, os._exit, (0,))
    later.daemon = True
    later.start()
