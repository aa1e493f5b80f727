"""The processes that train together: one, or as many as `torchrun` started."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.errors import RegardError, RunError

PATIENCE = timedelta(hours=24)  # the others wait so long while the first one prepares or validates
LOST = ("gloo", "nccl", "connection", "socket", "timed out", "broken pipe")  # what is said of a lost process

# The last group outlives whatever used it. Freed last by DDP, which holds Python's lock while it does so, a group waits
# for its threads, and one of them may wait for that lock: after an error a process would never end.
LAST: list[Any] = []


class ProcessGroup:
    """Who we are among how many. Alone, everything here does nothing."""

    def __init__(self, rank: int = 0, world: int = 1) -> None:
        self.rank, self.world = rank, world

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    def add(self, *numbers: float) -> list[float]:
        """Each number, added up over all processes."""
        if self.world == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total)
        return [float(x) for x in total]

    def share(self, value: Any) -> Any:
        """What the first process says, for all of them: anything that JSON can hold."""
        if self.world == 1:
            return value
        said = bytearray(json.dumps(value).encode() if self.first else b"")
        size = torch.tensor([len(said)])
        dist.broadcast(size, 0)
        data = torch.frombuffer(said, dtype=torch.uint8) if self.first else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return json.loads(bytes(data.tolist()))

    def wait(self) -> None:
        """Go on when all are here."""
        self.add(0.0)

    def wrap(self, module: nn.Module, how: str) -> nn.Module:
        """The module with its gradients shared, and with "fsdp" its weights split, over all processes.

        With "ddp" a weight that no process used keeps no gradient, as it would alone. "fsdp" also splits each block of
        an `nn.ModuleList`, and wants all processes to use the same weights in an update.
        """
        if self.world == 1:
            return module
        if how == "ddp":
            # Looking for unused weights also leaves the buckets as they are, so that a run that is resumed adds up
            # in the same order as one that was not: the same bits. It warns where it finds none, so there is one.
            module.register_parameter("unused", nn.Parameter(torch.zeros(1, device=next(module.parameters()).device)))
            return nn.parallel.DistributedDataParallel(module, find_unused_parameters=True)
        from torch.distributed.fsdp import fully_shard

        with torch.no_grad():
            for value in module.state_dict().values():
                dist.broadcast(value, 0)
        for part in list(module.modules()):
            if isinstance(part, nn.ModuleList):  # blocks in a row: only one of them is whole at a time
                for block in part:
                    fully_shard(block)
        fully_shard(module)
        return module


@contextmanager
def distributed(*, timeout: timedelta = PATIENCE) -> Iterator[ProcessGroup]:
    """The group that `torchrun` made, that of a process group that is there already, or one alone.

    `timeout` is how long one process waits for another that lives. One that dies is noticed at once.
    """
    ours = not (dist.is_available() and dist.is_initialized())
    if ours and int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ProcessGroup()
        return
    if ours:
        try:
            dist.init_process_group(timeout=timeout)
        except (RuntimeError, ValueError) as error:
            raise RunError(
                f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but the processes did not meet ({shortly(error)}); "
                "start them with torchrun, or unset WORLD_SIZE"
            ) from error
    LAST[:] = [dist.group.WORLD]
    rank, world = dist.get_rank(), dist.get_world_size()
    try:
        yield ProcessGroup(rank, world)
    except RegardError:
        raise
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or any(word in str(error).lower() for word in LOST):
            raise RunError(
                f"process {rank} of {world} lost another one ({shortly(error)}); start again with --resume"
            ) from error
        raise
    finally:
        if ours:
            dist.destroy_process_group()


def shortly(error: BaseException) -> str:
    """The first sentence of what a library says at length, without the line of its source.

    >>> shortly(RuntimeError("[/some/pair.cc:537] Read error [127.0.0.1]:61103: Connection reset by peer. This is …"))
    'Read error [127.0.0.1]:61103: Connection reset by peer'
    """
    said = re.sub(r"^\[[^\]]*:\d+\]\s*", "", str(error).strip().partition("\n")[0])
    return said.partition(". ")[0].rstrip(".")


def gather_full(value: Tensor) -> Tensor:
    """A tensor that is split over processes, whole; all of them must ask for it."""
    gather = getattr(value, "full_tensor", None)
    return value if gather is None else gather()
