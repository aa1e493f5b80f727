"""Being asked to stop: the step that is running is finished, then everything is saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Not every system has each of them; Windows has one more.
NAMES = {getattr(signal, name): name for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)}


class StopRequest:
    """Whether somebody asked, and by which signal. A second Ctrl-C does not wait."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def hear(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def catch_signals() -> Iterator[StopRequest]:
    """Catch Ctrl-C and SIGTERM while the block runs; in a thread that is not the main one nothing is caught."""
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.hear) for number in NAMES}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
