"""How threads share the work of a phase, and wait for each other at its end.

All threads run the same program. Of each phase they take chunks from a common counter until none is left, and then
wait until all chunks are done. No thread waits for another to *come*: whoever is late finds nothing left to do. So one
thread alone finishes everything, and a pool that is busy, or serialised, costs time and no more.
"""

import ctypes
import sys
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numpy.typing import NDArray

from regard.models.fast.compile import inline_kernel, operation

SPACING = 16  # int64 from counter to counter: each has its own cache line, and the next one's
SPINS = 4000  # how often a thread looks whether the others are done before it lets somebody else have the core


class Counters:
    """Two counters for each phase: chunks that were taken, and chunks that are done."""

    def __init__(self, phases: int) -> None:
        self.table: NDArray[np.int64] = np.zeros((phases + 1, 2 * SPACING), np.int64)
        self.table[:, 1] = find_yield()

    def reset(self) -> int:
        """Nothing is done yet; the address of the first."""
        self.table[:, ::SPACING] = 0
        return self.table.ctypes.data


def find_yield() -> int:
    """The address of what gives the core to another thread that waits for one; 0 where there is none to call."""
    try:
        library, name = ("kernel32", "SwitchToThread") if sys.platform == "win32" else (None, "sched_yield")
        function = getattr(ctypes.CDLL(library), name)
    except (AttributeError, OSError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@operation
def fetch_add(context: Any, address: Any, amount: Any) -> Any:
    """Adds to an int64 that all threads see; what it was before."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, values[1], "seq_cst")

    return types.int64(types.int64, types.int64), build


@operation
def fetch(context: Any, address: Any) -> Any:
    """An int64 that all threads see, and with it what they wrote before they changed it."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(values[0], ir.IntType(64).as_pointer()), "seq_cst", 8)

    return types.int64(types.int64), build


@inline_kernel
def take(counter: int) -> int:
    """The next chunk of this phase."""
    return fetch_add(counter, 1)


@inline_kernel
def finish(counter: int) -> None:
    """A chunk is done."""
    fetch_add(counter + 8 * SPACING, 1)


@operation
def call_at(context: Any, address: Any) -> Any:
    """Calls the function at an address: no arguments, and what it returns is not looked at."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), [])

    return types.int32(types.int64), build


@inline_kernel
def wait(counter: int, chunks: int) -> int:
    """Returns when all chunks are done: the counter of the next phase."""
    spins = 0
    while fetch(counter + 8 * SPACING) < chunks:
        spins += 1
        if spins > SPINS:
            give_way = fetch(counter + 8)
            if give_way:
                call_at(give_way)
    return counter + 16 * SPACING
