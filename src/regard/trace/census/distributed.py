"""Several processes that share one piece of work, as `torchrun` starts them. Nothing here pickles."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from regard.errors import TraceError


@contextmanager
def processes() -> Iterator[tuple[int, int]]:
    """(which process this is, how many there are).

    Uses the process group that is there; under `torchrun` without one, a gloo group that is ended again.
    """
    told = all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"))
    alone = not dist.is_available() or not told or int(os.environ["WORLD_SIZE"]) < 2
    ours = not alone and not dist.is_initialized()
    if ours:
        dist.init_process_group("gloo")
    try:
        running = dist.is_available() and dist.is_initialized()
        yield (dist.get_rank(), dist.get_world_size()) if running else (0, 1)
    finally:
        if ours:
            dist.destroy_process_group()


def is_distributed() -> bool:
    """Whether there is anybody to share with."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def device() -> torch.device:
    """Where tensors must live to be exchanged."""
    if dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def exchange(said: Any) -> list[Any]:
    """What every process says, in order: anything that JSON can hold."""
    if not is_distributed():
        return [said]
    letters = torch.frombuffer(bytearray(json.dumps(said).encode()), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.long, device=device()) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([letters.numel()], device=device()))
    most = max(int(size) for size in sizes)
    padded = torch.zeros(most, dtype=torch.uint8, device=device())
    padded[: letters.numel()] = letters.to(padded.device)
    heard = [torch.zeros_like(padded) for _ in sizes]
    dist.all_gather(heard, padded)
    return [json.loads(bytes(some[: int(size)].tolist())) for some, size in zip(heard, sizes)]


def add_up(sums: dict[str, Tensor], failed: str = "") -> dict[str, Tensor]:
    """The sums of all processes, the same everywhere; a process may lack some of them.

    `failed` is why this process could not do its part: then all of them stop, instead of waiting for it.
    """
    if not is_distributed():
        return sums
    said = exchange({"failed": failed, "shapes": {name: list(values.shape) for name, values in sums.items()}})
    for rank, one in enumerate(said):
        if one["failed"]:
            raise TraceError(f"process {rank} stopped: {one['failed']}")
    shapes: dict[str, list[int]] = {}
    for one in said:
        for name, shape in one["shapes"].items():
            if shapes.setdefault(name, shape) != shape:
                raise TraceError(f"{name} has shape {shape} in one process and {shapes[name]} in another")
    whole = [sums.get(name, torch.zeros(shape, dtype=torch.float64)).double() for name, shape in shapes.items()]
    flat = torch.cat([values.flatten() for values in whole] or [torch.zeros(0, dtype=torch.float64)]).to(device())
    dist.all_reduce(flat)
    parts = flat.cpu().split([values.numel() for values in whole])
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts)}
