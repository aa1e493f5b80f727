"""Where a run computes."""

import os
from typing import Any

import torch
from torch import Tensor

from regard.errors import ConfigError


def choose_device(named: str) -> torch.device:
    """The device of that name; "auto" is an accelerator where there is one. Under `torchrun` each process has its own.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    try:
        device = accelerator() if named == "auto" else torch.device(named)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f"device is {named!r}, but this machine cannot compute there ({str(error).partition(chr(10))[0]}); "
            "give cpu, or auto for whatever is there"
        ) from error
    if str(device) == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def accelerator() -> torch.device:
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None else torch.device(found.type)


def to_device(batch: Any, device: torch.device) -> Any:
    """The same with every tensor on the device: tuples, lists and dictionaries keep their kind.

    >>> to_device((torch.ones(2), ["text", torch.zeros(3)]), torch.device("meta"))[1][1].device
    device(type='meta')
    """
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: to_device(value, device) for name, value in batch.items()}
    if isinstance(batch, list):
        return [to_device(value, device) for value in batch]
    if isinstance(batch, tuple):
        parts = [to_device(value, device) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return batch


def own_randomness(device: torch.device) -> Any:
    """A block whose random numbers leave those of the run as they are."""
    if device.type == "cpu":
        return torch.random.fork_rng(devices=[])
    return torch.random.fork_rng(devices=[device.index or 0], device_type=device.type)
