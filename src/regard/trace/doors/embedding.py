"""The embedding door: which ids became which tensor, and, where two texts could be mixed up, what is made of it next.

Torch's `embedding` is intercepted below autograd, as `bmm` is. The few operations that stand between an embedding and
the first attention (scaling, adding positions, normalising, projecting) are intercepted only while a listener asks for
it, because an addition is met far too often for more.
"""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from regard.trace.doors.dispatcher import ATEN, COMPOSITE, Kernels, Library
from regard.trace.doors.scope import ListenerScope, current_scope, paused


def embedding_kernel(keys: Any, weight: Tensor, indices: Tensor, *args: Any, **named: Any) -> Tensor:
    after = keys & torch._C._after_ADInplaceOrView_keyset
    out: Tensor = ATEN.embedding.default.redispatch(after, weight, indices, *args, **named)
    scope = current_scope()
    if scope is not None:
        announce_embedding(scope, weight, indices, out, sys._getframe(1))
    return out


def announce_embedding(scope: ListenerScope, weight: Tensor, ids: Tensor, out: Tensor, frame: FrameType) -> None:
    """Tell every listener that wants to know."""
    if torch._C._functorch.is_functorch_wrapped_tensor(ids) or ids.is_meta or type(ids) is not Tensor:
        return
    with paused(scope):
        for listener in scope.listeners:
            hear = getattr(listener, "hear_embedding", None)
            if hear is not None:
                hear(weight, ids, out, frame)


def announce_derived(inputs: tuple[Any, ...], out: Tensor) -> None:
    scope = current_scope()
    if scope is not None:
        for listener in scope.listeners:
            hear = getattr(listener, "hear_derived", None)
            if hear is not None:
                hear(inputs, out)


def derived_below(name: str) -> Callable[..., Tensor]:
    """A kernel below autograd: torch's own answer, and a word of what it was made from."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(ATEN, packet), overload or "default")

    def kernel(*args: Any, **named: Any) -> Tensor:
        with torch._C._AutoDispatchBelowADInplaceOrView():  # called by name, so that a plain number stays one
            out: Tensor = operator(*args, **named)
        announce_derived(tuple(args[0]) if isinstance(args[0], list | tuple) else args[:2], out)
        return out

    return kernel


def derived_composite(name: str) -> Callable[..., Tensor]:
    """The same for an operator that torch writes with others: what it is made of counts is its first argument."""
    operator = getattr(ATEN, name).default

    def kernel(*args: Any, **named: Any) -> Tensor:
        out: Tensor = operator._op_dk(COMPOSITE, *args, **named)
        announce_derived(args[:1], out)
        return out

    return kernel


HERE = "ADInplaceOrView"
BELOW = ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "cat", "clone")
COMPOSITES = ("linear", "layer_norm", "rms_norm", "dropout")


IDLE = ("threading.py", "queue.py", "selectors.py", "socket.py", "connection.py")


def others_wait() -> bool:
    """Whether every other thread waits for something, so that none of them is on its way into a kernel."""
    mine = threading.get_ident()
    frames = [frame for thread, frame in sys._current_frames().items() if thread != mine]
    return all(frame.f_code.co_filename.endswith(IDLE) for frame in frames)


class BelowLibrary(Library):
    """Kernels of which some stand below autograd only, so that no kernel of a backend is exchanged.

    Torch fails where such a kernel vanishes between being looked up and being run, and additions are looked up all the
    time. So it goes only while every other thread waits; until then it hands every call straight on.
    """

    def __init__(self, kernels: Kernels, lower: Kernels, *, keys: bool) -> None:
        super().__init__(kernels)
        self.lower, self.keys = lower, keys

    def install(self) -> None:
        fresh = self.library is None
        super().install()
        if fresh and (library := self.library) is not None:
            for name, kernel in self.lower.items():
                library.impl(name, kernel, HERE, with_keyset=self.keys)

    def close(self) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                self.leave()

    def expire(self) -> None:
        with self.lock:
            self.waiting = None
            if not self.users:
                self.leave()

    def leave(self) -> None:
        """Go now, or try again a moment later."""
        if others_wait():
            self.remove()
        elif self.waiting is None:
            self.wait()


EMBEDDINGS = BelowLibrary({}, {"embedding": embedding_kernel}, keys=True)
# What is made of an embedding is followed only where two texts could be mixed up, up to the first attention.
DERIVED = BelowLibrary(
    {name: derived_composite(name) for name in COMPOSITES}, {name: derived_below(name) for name in BELOW}, keys=False
)


def open_embedding() -> Callable[[], None]:
    """Install the embedding's kernel; gives back how to undo it."""
    EMBEDDINGS.open()
    return EMBEDDINGS.close
