"""What a computation takes: seconds and bytes, measured here and now.

Peak memory of the CPU is read from torch's own allocator by the one profiler of torch that neither prints nor writes
anything; it is a private function of torch and stands in this file only.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

ROUNDS = 3
PROFILER: Any = torch.autograd


class MeasuredCost(NamedTuple):
    """The least seconds of some rounds, and the most bytes held at once beyond what came in and went out.

    On the CPU, seconds are those that the processor worked for this process, so that other work on the machine does
    not count; on an accelerator they are those of the clock. `bytes` is None where it could not be read.
    """

    seconds: float
    bytes: int | None


def measure_cost(
    run: Callable[[], Tensor], device: torch.device | str = "cpu", *, rounds: int = ROUNDS
) -> MeasuredCost:
    """What one call of `run` takes; it is called once more than there are rounds, first for its memory.

    >>> x = torch.zeros(64, 64)
    >>> measure_cost(lambda: (x + 1).exp()).bytes  # those of x + 1
    16384
    """
    held = peak(run, device)
    return MeasuredCost(min(seconds(run, device) for _ in range(rounds)), held)


def seconds(run: Callable[[], object], device: torch.device | str = "cpu") -> float:
    """How long one call takes."""
    if torch.device(device).type == "cpu":
        first = time.process_time()
        run()
        return time.process_time() - first
    accelerator = torch.accelerator if torch.accelerator.is_available() else None
    if accelerator is not None:
        accelerator.synchronize()
    first = time.perf_counter()
    run()
    if accelerator is not None:
        accelerator.synchronize()
    return time.perf_counter() - first


def peak(run: Callable[[], Tensor], device: torch.device | str = "cpu") -> int | None:
    """The most bytes that were held at once while `run` ran, less those of what it gave back."""
    where = torch.device(device)
    if where.type == "cuda":
        torch.cuda.reset_peak_memory_stats(where)
        before = torch.cuda.memory_allocated(where)
        given = nbytes(run())
        return max(0, torch.cuda.max_memory_allocated(where) - before - given)
    if where.type != "cpu":
        run()
        return None
    try:
        PROFILER._enable_profiler_legacy(config())
    except RuntimeError:  # somebody else is profiling this thread
        run()
        return None
    try:
        given = nbytes(run())
    finally:
        threads = PROFILER._disable_profiler_legacy()
    most = 0
    for thread in threads:
        held = 0
        for event in thread:
            if event.kind() == "memory_alloc":
                held += event.cpu_memory_usage()
                most = max(most, held)
    return max(0, most - given)


def nbytes(x: Tensor) -> int:
    return x.numel() * x.element_size()


def config() -> Any:
    """Memory, and nothing else."""
    return PROFILER.ProfilerConfig(
        PROFILER.ProfilerState.CPU, False, True, False, False, False, torch._C._profiler._ExperimentalConfig()
    )
