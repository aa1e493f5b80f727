"""A time limit for walks over a map, which end between two blocks: a server must not be held up by one huge map."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from regard.errors import MapError

_limit: ContextVar[tuple[float, float] | None] = ContextVar("regard_time_limit", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Within it, a walk over a map that goes on for longer raises `MapError` before its next block.

    >>> from regard.errors import MapError
    >>> with time_limit(60.0):
    ...     check_time()
    """
    token = _limit.set((time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _limit.reset(token)


def check_time() -> None:
    """Raise where the time is up; costs nothing where no limit is set."""
    limit = _limit.get()
    if limit is not None and time.monotonic() > limit[0]:
        raise MapError(
            f"this took more than {limit[1]:g} seconds and was stopped; look at a smaller part, or measure it in Python"
        ).with_code("trace.slow", seconds=limit[1])
