"""Kernels in torch's dispatcher, there only while somebody uses them.

They go in and out by torch's own registration, which `torch.library` wraps without a way to remove: it is private, and
stands in this file only. It takes a quarter of a watch of a tiny model, so nothing is done there twice.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from types import FrameType
from typing import Any

import torch

from regard.trace.doors.below import Below, own_kernel

Kernels = dict[str, Callable[..., Any]]

GRACE = 0.5  # seconds until it is asked again whether other threads wait
IDLE = ("threading.py", "queue.py", "selectors.py", "socket.py", "connection.py", "futures/thread.py")  # where they do


class Library:
    """Kernels that are installed while at least one user lives in the process.

    A kernel must not be taken away while another thread is on its way into it: torch fails where one vanishes between
    being looked up and being run. So it goes only while every other thread waits, or has nothing to do with torch, at
    once or some moment after the last user has gone; until then it hands every call straight on.

    `kernels` stand above autograd, `below` below it, for inference tensors in the place of torch's own; `plain_below`
    below it only, without the set of keys where they call by name; `nested` serve torch's nested tensors.
    """

    warned = False

    def __init__(
        self,
        kernels: Kernels,
        below: Below | None = None,
        nested: Kernels | None = None,
        *,
        plain_below: Kernels | None = None,
    ) -> None:
        self.kernels, self.below, self.nested = kernels, below or {}, nested or {}
        self.plain_below = plain_below or {}
        self.lock = threading.RLock()
        self.users = 0
        self.hears_inference = True  # whether kernels stand in the place of torch's own, for inference tensors
        self.library: Any = None  # what torch holds our kernels by
        self.waiting: threading.Timer | None = None
        self.others: list[Callable[[], Callable[[], None]]] = []  # further doors: open() gives close()
        self.closing: list[Callable[[], None]] = []

    def open(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                try:
                    self.install()
                except BaseException:
                    self.close()
                    raise

    def install(self) -> None:
        if self.library is None:
            self.library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
            put = self.library.impl
            for name, kernel in self.kernels.items():
                for backend in backends():
                    put(name, f"Autograd{backend}", kernel)
                    put(name, backend, kernel)
            for name, kernel in self.nested.items():  # one key: torch loses count where two are taken away
                put(name, "AutogradNestedTensor", kernel)
            with hush_warning():
                for name, kernel in self.plain_below.items():
                    put(name, "ADInplaceOrView", kernel)
                    Library.warned |= is_in_place(name)
            for name, (kernel, _) in self.below.items():
                put(name, "ADInplaceOrView", kernel, True)  # with the set of keys
            # Beside other threads, which all pass this way, a kernel cannot be exchanged safely.
            self.hears_inference = is_alone()
            if self.below and self.hears_inference:
                self.exchange(put)
        for opening in self.others:
            self.closing.append(opening())

    def exchange(self, put: Callable[..., None]) -> None:
        """Put kernels for inference tensors in the place of torch's own, which they call."""
        with hush_warning():
            for name, (_, of_inference) in self.below.items():
                for backend in backends():
                    if own_kernel(f"aten::{name}", backend) is not None:
                        put(name, backend, of_inference, True)
                        Library.warned = True

    def close(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users:
                return
            while self.closing:
                self.closing.pop()()
            self.leave()

    def leave(self) -> None:
        """Go now, or look again a moment later."""
        if others_wait():
            self.remove()
        elif self.waiting is None:
            self.wait()

    def wait(self) -> None:
        self.waiting = threading.Timer(GRACE, self.expire)
        self.waiting.daemon = True
        self.waiting.start()

    def expire(self) -> None:
        with self.lock:
            self.waiting = None
            if not self.users:
                self.leave()

    def remove(self) -> None:
        if self.library is not None:
            self.library.reset()
            self.library = None


@contextmanager
def hush_warning() -> Iterator[None]:
    """Torch warns, once in a process, that a kernel is overridden."""
    with nullcontext() if Library.warned else warnings.catch_warnings():
        if not Library.warned:
            warnings.simplefilter("ignore", UserWarning)
        yield


def is_in_place(name: str) -> bool:
    """Whether an operator writes to a tensor of the caller's, so that torch has a kernel of its own below autograd."""
    return name.endswith(("_", ".out"))


def others_wait() -> bool:
    """Whether every other thread waits, or has nothing to do with torch, so that none is on its way into a kernel."""
    mine = threading.get_ident()
    return not any(may_compute(frame) for thread, frame in sys._current_frames().items() if thread != mine)


def may_compute(frame: FrameType) -> bool:
    """Whether a thread that stands here does not wait, and some code on its way knows torch or holds a tensor."""
    if frame.f_code.co_filename.endswith(IDLE):
        return False
    near: FrameType | None = frame
    while near is not None:
        if "torch" in near.f_globals or str(near.f_globals.get("__name__", "")).startswith("torch"):
            return True
        if any(isinstance(x, torch.Tensor | torch.nn.Module) for x in list(near.f_locals.values())):
            return True
        near = near.f_back
    return False


def is_alone() -> bool:
    """Whether no other thread could be calling a kernel now."""
    return all(
        isinstance(thread, threading.Timer) or thread is threading.current_thread() for thread in threading.enumerate()
    )


@cache
def backends() -> tuple[str, ...]:
    """The devices of this machine: a kernel for an absent one would only cost time."""
    found = ["CPU"]
    if torch.cuda.is_available():
        found.append("CUDA")
    if torch.backends.mps.is_available():
        found.append("MPS")
    return tuple(found)
