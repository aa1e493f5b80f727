"""The processes that train together: one, or as many as `torchrun` started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.errors import RunError


class Team:
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
        """What the first process says, for all of them."""
        if self.world == 1:
            return value
        said = [value]
        dist.broadcast_object_list(said, 0)
        return said[0]

    def wait(self) -> None:
        """Go on when all are here."""
        if self.world > 1:
            dist.barrier()

    def wrap(self, module: nn.Module, how: str) -> nn.Module:
        """The module with its gradients shared."""
        if self.world == 1:
            return module
        if how == "fsdp":
            from torch.distributed.fsdp import fully_shard

            fully_shard(module)
            return module
        return nn.parallel.DistributedDataParallel(module)


@contextmanager
def together() -> Iterator[Team]:
    """The team that `torchrun` made, or one alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Team()
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Team(dist.get_rank(), world)
    except (RuntimeError, dist.DistError) as error:
        if "gloo" in str(error).lower() or "Connection" in str(error) or isinstance(error, dist.DistError):
            raise RunError(
                f"process {os.environ.get('RANK')} lost the others ({str(error).splitlines()[0]}); "
                "start again with --resume"
            ) from error
        raise
    finally:
        dist.destroy_process_group()


def full(value: Tensor) -> Tensor:
    """A tensor that is split over processes, whole."""
    gather = getattr(value, "full_tensor", None)
    return value if gather is None else gather()
