"""Work on all cores that torch may use: threads that take one core each, because many small sums share no work well."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

from regard.attention.map.deadline import check_time
from regard.memory import make_room

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_on_cores(work: Callable[[Part], Result], parts: Iterable[Part], threads: int | None = None) -> Iterator[Result]:
    """What comes of each part, in their order, whatever the number of threads: by default as many as torch may use.

    >>> list(map_on_cores(lambda number: number * number, [2, 3, 5]))
    [4, 9, 25]
    """
    count = count_threads() if threads is None else threads
    work = torch.no_grad()(work)
    results = iter(map(work, parts)) if count < 2 and threads is None else open_threads(count).map(work, parts)
    for result in results:
        yield result
        check_time()  # where it raises, the parts that are left are not begun


def count_threads() -> int:
    """How many threads a walk takes: as many as torch may use here, and no more than there are cores."""
    return min(count_cores(), torch.get_num_threads())


def count_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def open_threads(count: int) -> ThreadPoolExecutor:
    """So many threads that take one core each, begun at once.

    What the last thread sets holds for all that ask for the first time later, so each asks at once, and whoever opens
    them sets his own number again.
    """
    make_room()  # blocks come and go; without it each takes fresh pages
    own = torch.get_num_threads()
    threads = ThreadPoolExecutor(count, "regard-walk", initializer=take_one_core)
    begun = threading.Barrier(count)
    list(threads.map(lambda _: begun.wait(60), range(count)))
    torch.set_num_threads(own)
    return threads


def take_one_core() -> None:
    """From now on torch computes on one core in this thread."""
    torch.set_num_threads(1)
    torch.get_num_threads()  # the first question decides, by what was set last anywhere


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=open_threads.cache_clear)  # a child has none of its parent's threads
