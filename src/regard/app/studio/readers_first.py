"""Who looks goes first: a model that runs lets those who wait for an answer by, for a moment before each step.

Both work in one interpreter. A tile is a hundred short calls, and before each of them it would have to win against the
model; between two tokens a pause costs the model little, and all waiting tiles come through.
"""

from threading import Condition
from types import TracebackType

PAUSE = 0.02  # seconds that a model waits before a step at most: it always gets on, whoever looks


class ReadersFirst:
    """Counts those who wait for an answer: `with way:` around one question.

    >>> way = ReadersFirst()
    >>> way.give()  # nobody asks: at once
    True
    """

    def __init__(self) -> None:
        self.asking, self.changed = 0, Condition()

    def __enter__(self) -> None:
        with self.changed:
            self.asking += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.changed:
            self.asking -= 1
            if not self.asking:
                self.changed.notify_all()

    def give(self, pause: float = PAUSE) -> bool:
        """Wait until nobody asks, but not for longer than that; whether nobody does."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.asking, pause)
