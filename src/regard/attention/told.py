"""Who wants to know of every call of `attend` in this context, and may answer with another mix."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

Teller = Callable[[Any, Tensor], Any]  # what came out and the values → what shall come out

TOLD: ContextVar[Teller | None] = ContextVar("regard_told", default=None)


def told(found: Any, v: Tensor) -> Any:
    """What `attend` gives back, after whoever listens has heard it."""
    if torch.compiler.is_compiling():
        return found
    hear = TOLD.get()
    return found if hear is None else hear(found, v)
