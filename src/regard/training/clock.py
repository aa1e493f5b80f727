"""How fast a run trains and how long it still takes."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

RECENT = 50  # updates over which a speed is measured


class Speed(NamedTuple):
    """What a clock says of one process at one moment."""

    seconds: float  # since the process began, whatever it did
    training_seconds: float  # of these, in updates
    validation_seconds: float  # of these, in validations
    updates: int
    tokens: int  # that were read, or written where the task writes
    tokens_per_second: float | None  # of training, over the last updates; None before the first one
    updates_per_second: float | None  # likewise
    seconds_left: float | None  # until the run is over, by what was measured so far


class TrainingClock:
    """Counts what one process does with its time.

    A second of training is one in which updates are made: from the moment when a batch is waited for until the
    optimizer has made its step. Validations, maps that are shown, lines and checkpoints are no part of it. A token is
    one that is read, over all processes, and of tasks that write one that is written; padding is none.

        tokens per second = tokens of the last 50 updates / seconds of training in them

    >>> ticks = iter(range(100))
    >>> clock = TrainingClock(lambda: next(ticks))  # every look at it takes a second
    >>> clock.resume(); clock.count_update(30)
    >>> with clock.validation():
    ...     pass
    >>> clock.resume(); clock.count_update(50)
    >>> speed = clock.read(steps_left=3, validations_left=2)
    >>> speed.training_seconds, speed.validation_seconds, speed.tokens_per_second, speed.updates_per_second
    (2.0, 1.0, 40.0, 1.0)
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.now = now
        self.began = self.resumed = now()
        self.training = self.validating = self.before = 0.0
        self.updates = self.tokens = self.validations = 0
        self.marks = deque([(0.0, 0)], maxlen=RECENT + 1)  # seconds of training and tokens after each update

    def resume(self) -> None:
        """From now on it is training: the next batch is waited for."""
        self.resumed = self.now()
        if not self.updates:  # what was shown or validated first comes only once
            self.before = self.resumed - self.began - self.validating

    def count_update(self, tokens: int) -> None:
        """An update is made, of so many tokens; what follows is no training until `resume`."""
        self.training += self.now() - self.resumed
        self.updates += 1
        self.tokens += tokens
        self.marks.append((self.training, self.tokens))

    @contextmanager
    def validation(self) -> Iterator[None]:
        """What the block does is a validation."""
        began = self.now()
        yield
        self.validating += self.now() - began
        self.validations += 1

    def read(self, *, steps_left: int, validations_left: int) -> Speed:
        """What was counted, and how long the rest takes.

        A step that is left takes as long as the last ones did, with its share of all that is neither training nor
        validation; a validation as long as those before it. Before the first validation, none is known to take time.
        """
        seconds = self.now() - self.began
        tokens_per_second = updates_per_second = left = None
        if self.updates:
            taken = max(self.marks[-1][0] - self.marks[0][0], 1e-9)
            tokens_per_second = (self.marks[-1][1] - self.marks[0][1]) / taken
            updates_per_second = (len(self.marks) - 1) / taken
            beside = max(seconds - self.before - self.training - self.validating, 0.0) / self.updates
            left = steps_left * (1 / updates_per_second + beside)
            if self.validations:
                left += validations_left * self.validating / self.validations
        return Speed(
            seconds=seconds,
            training_seconds=self.training,
            validation_seconds=self.validating,
            updates=self.updates,
            tokens=self.tokens,
            tokens_per_second=tokens_per_second,
            updates_per_second=updates_per_second,
            seconds_left=left,
        )
