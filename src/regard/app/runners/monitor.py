"""How a run goes, for whoever waits for it."""

import time
from collections.abc import Callable

from regard.app.protocol.limits import SECONDS
from regard.app.protocol.messages import (
    ProgressEvent,
    RowsEvent,
    RunEvent,
    RunStep,
    TokenEvent,
    TroubleEvent,
    describe_error,
)
from regard.app.protocol.refusal import Refusal, RunStopped
from regard.errors import RegardError
from regard.trace.record.trace import Trace


class RunMonitor:
    """A callback that hears the events of a run, and may stop it."""

    EVERY = 0.3  # seconds between two looks at a run that is not over

    def __init__(
        self, send: Callable[[RunEvent], None] | None = None, stopped: Callable[[], bool] | None = None
    ) -> None:
        self._send, self._stopped = send, stopped
        self.rows: Callable[[Trace], None] | None = None  # takes what was seen so far
        self.give_way: Callable[[], object] | None = None  # waits a moment where others should go first
        self.looked, self.started = 0.0, time.monotonic()

    def progress(self, text: str, step: RunStep, name: str = "") -> None:
        """What is being done."""
        self.send(ProgressEvent(kind="progress", text=text, share=None, step=step, name=name))

    def trouble(self, error: RegardError) -> None:
        """What went wrong beside the run, which goes on."""
        self.send(TroubleEvent(kind="trouble", text=str(error), **describe_error(error)))

    def token(self, text: str, number: int, of: int) -> None:
        """A token was written: the text that it adds."""
        self.send(TokenEvent(kind="token", text=text, number=number, of=of))

    def rows_of(self, trace: str) -> None:
        """What was seen so far can be opened under this name."""
        self.send(RowsEvent(kind="rows", trace=trace))

    def send(self, event: RunEvent) -> None:
        if self._send is not None:
            self._send(event)

    def look(self, trace: Trace) -> None:
        """Show what was seen so far, unless that was shown a moment ago."""
        now = time.monotonic()
        if self.rows is None or now - self.looked < self.EVERY:
            return
        runs = trace.runs
        if runs and runs[-1].layers:
            self.rows(Trace([runs[-1]], model=trace.model, fingerprint=trace.fingerprint))
            self.looked = time.monotonic()

    def must_go_on(self) -> None:
        """Raise where nobody waits for the run any more, or where it takes too long."""
        if self._stopped is not None and self._stopped():
            raise RunStopped("the run was stopped")
        if time.monotonic() - self.started > SECONDS:
            raise Refusal(
                f"the model wrote for more than {SECONDS:.0f} seconds and was stopped; ask for fewer tokens"
            ).with_code("model.slow", seconds=round(SECONDS))
        if self.give_way is not None:
            self.give_way()
