"""Who wants to know of every call of `attend` in this context, and may answer with another mix."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

Observer = Callable[[Any, Tensor], Any]  # what came out and the values → what shall come out

OBSERVER: ContextVar[Observer | None] = ContextVar("regard_told", default=None)

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
    """What `attend` gives back, after whoever listens has heard it."""
    if torch.compiler.is_compiling():
        return found
    hear = OBSERVER.get()
    return found if hear is None else hear(found, v)
