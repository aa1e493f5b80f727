"""Who wants to know of every call of `attend` in this context, and may answer with another mix."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

Teller = Callable[[Any, Tensor], Any]  # what came out and the values → what shall come out

TOLD: ContextVar[Teller | None] = ContextVar("regard_told", default=None)

UNHEARD: ContextVar[bool] = ContextVar("regard_unheard", default=False)


def overheard() -> bool:
    """Whether somebody wants to know of what is computed here."""
    return TOLD.get() is not None and not UNHEARD.get()


@contextmanager
def unheard() -> Iterator[None]:
    """Nobody keeps what is computed in here; who changes attention still does."""
    before = UNHEARD.set(True)
    try:
        yield
    finally:
        UNHEARD.reset(before)


def told(found: Any, v: Tensor) -> Any:
    """What `attend` gives back, after whoever listens has heard it."""
    if torch.compiler.is_compiling():
        return found
    hear = TOLD.get()
    return found if hear is None else hear(found, v)
