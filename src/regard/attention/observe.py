"""Who wants to know of every call of `attend` in this context, and may answer with another mix."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

Observer = Callable[[Any, Tensor], Any]  # what came out and the values → what shall come out

Record = list[tuple[nn.Module, Any]]  # the module that called `attend`, and what came out

OBSERVER: ContextVar[Observer | None] = ContextVar("regard_told", default=None)
RECORDERS: ContextVar[tuple[Record, ...]] = ContextVar("regard_listening", default=())

MUTED: ContextVar[bool] = ContextVar("regard_unheard", default=False)


def has_listeners() -> bool:
    """Whether somebody wants to know of what is computed here."""
    return OBSERVER.get() is not None and not MUTED.get()


@contextmanager
def muted() -> Iterator[None]:
    """Nobody keeps what is computed in here; who changes attention still does."""
    before = MUTED.set(True)
    try:
        yield
    finally:
        MUTED.reset(before)


def notify(found: Any, v: Tensor) -> Any:
    """What `attend` gives back, after whoever listens has heard it: the one place where a call is announced."""
    if torch.compiler.is_compiling():
        return found
    hear = OBSERVER.get()
    if hear is not None:
        found = hear(found, v)
    recorders = RECORDERS.get()
    if recorders:
        record(recorders, sys._getframe(1), found)
    return found


def record(recorders: tuple[Record, ...], frame: FrameType | None, found: Any) -> None:
    """Write a call down for the innermost module that made it; a call by no module belongs to no layer."""
    while frame is not None:
        code = frame.f_code
        module = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if isinstance(module, nn.Module):
            for recorder in recorders:
                recorder.append((module, found))
            return
        frame = frame.f_back
