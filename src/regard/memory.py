"""Memory that is freed: what the process keeps for the next watch, and what it gives back.

A watch holds q, k and v of every layer and lets go of all of them at once. glibc gives so much memory back to the
system, and whoever needs it next pays for every page of it again: an eighth of a step of 512 tokens. How much it keeps
it learns from the largest block that was ever freed, so it is shown one of the largest size that it learns from. The
block is never touched; from then on up to 64 MB of freed memory stay with the process, as they do in any process that
once freed a tensor of 32 MB. Who sets MALLOC_MMAP_THRESHOLD_ or MALLOC_TRIM_THRESHOLD_ has decided: nothing changes.

A watch that writes to a file is the other way round: it lets go of each layer as it comes, and what little it keeps
lies between the large blocks that the model frees, so that the next of their size no longer fit. Without `give_back`
such a watch grew by half of what it had written. Training is like it: batches are of ever new lengths, and a run over
questions took 3.3 GB after half an hour, of which 0.5 were in use.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import torch

LARGEST = 32 << 20  # bytes; glibc learns nothing from blocks that are larger
AROUND = 1 << 16  # what the allocator adds for its own use


@cache
def make_room() -> None:
    """Once per process, and for no cost."""
    torch.empty(LARGEST - AROUND, dtype=torch.uint8, device="cpu")


def give_back() -> None:
    """Hand freed memory to the system, also where it lies between blocks in use; glibc only, elsewhere nothing."""
    trim = trimmer()
    if trim is not None:
        trim(0)


@cache
def trimmer() -> Callable[[int], object] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another allocator, another system
        return None
    found.argtypes = (ctypes.c_size_t,)
    return found
