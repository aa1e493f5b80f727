"""The embedding door: which ids became which tensor, and, where two texts could be mixed up, what is made of it next.

Torch's `embedding` is intercepted below autograd, as `bmm` is. The few operations that stand between an embedding and
the first attention (scaling, adding positions, normalising, projecting) are intercepted only while a listener asks for
it, because an addition is met far too often for more.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from regard.trace.doors.dispatcher import ATEN, COMPOSITE
from regard.trace.doors.library import Library
from regard.trace.doors.scope import ListenerScope, current_scope, paused


def embedding_kernel(weight: Tensor, indices: Tensor, *args: Any, **named: Any) -> Tensor:
    with torch._C._AutoDispatchBelowADInplaceOrView():
        out: Tensor = ATEN.embedding.default(weight, indices, *args, **named)
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


BELOW = ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "cat", "clone")
COMPOSITES = ("linear", "layer_norm", "rms_norm", "dropout")


EMBEDDINGS = Library({}, plain_below={"embedding": embedding_kernel})
# What is made of an embedding is followed only where two texts could be mixed up, up to the first attention.
DERIVED = Library(
    {name: derived_composite(name) for name in COMPOSITES}, plain_below={name: derived_below(name) for name in BELOW}
)


def open_embedding() -> Callable[[], None]:
    """Install the embedding's kernel; gives back how to undo it."""
    EMBEDDINGS.open()
    return EMBEDDINGS.close
