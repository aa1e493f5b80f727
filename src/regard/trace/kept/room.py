"""Room for what is kept: the process keeps the memory of one watch for the next.

A watch holds q, k and v of every layer and lets go of all of them at once. glibc gives so much memory back to the
system, and whoever needs it next pays for every page of it again: an eighth of a step of 512 tokens. How much it keeps
it learns from the largest block that was ever freed, so it is shown one of the largest size that it learns from. The
block is never touched; from then on up to 64 MB of freed memory stay with the process, as they do in any process that
once freed a tensor of 32 MB. Who sets MALLOC_MMAP_THRESHOLD_ or MALLOC_TRIM_THRESHOLD_ has decided: nothing changes.
"""

from functools import cache

import torch

LARGEST = 32 << 20  # bytes; glibc learns nothing from blocks that are larger
AROUND = 1 << 16  # what the allocator adds for its own use


@cache
def make_room() -> None:
    """Once per process, and for no cost."""
    torch.empty(LARGEST - AROUND, dtype=torch.uint8, device="cpu")
