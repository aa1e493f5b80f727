"""What every opened model can do, and what comes out."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from regard.app.protocol.limits import SECONDS
from regard.app.protocol.refusal import Refusal, Stopped
from regard.app.protocol.wire import EditOf, RunAsk
from regard.errors import RegardError
from regard.trace.record.trace import Trace

Chances = list[dict[str, Any]]  # [{"name": …, "share": …}], the strongest first


@dataclass
class Ran:
    """A run: what was attended to, what came out, and what is needed to run it again."""

    trace: Trace
    output: dict[str, Any]  # text, next and classes, as in source.ts
    given: dict[str, Any]  # plain values
    picture: dict[str, Any] | None = None


@dataclass
class Changed:
    """The same under edits, beside what it was."""

    trace: Trace
    output: dict[str, Any]
    before: Chances = field(default_factory=list)
    after: Chances = field(default_factory=list)
    before_text: str | None = None
    after_text: str | None = None
    kl: float | None = None


class RunMonitor:
    """Somebody who hears how a run goes, and may stop it."""

    EVERY = 0.3  # seconds between two looks at a run that is not over

    def __init__(
        self, tell: Callable[[dict[str, Any]], None] | None = None, stopped: Callable[[], bool] | None = None
    ) -> None:
        self._tell, self._stopped = tell, stopped
        self.rows: Callable[[Trace], None] | None = None  # takes what was seen so far
        self.give_way: Callable[[], object] | None = None  # waits a moment where others should go first
        self.looked, self.started = 0.0, time.monotonic()

    def progress(self, text: str, **more: str) -> None:
        """What is being done. `step` and `name` say it for those who speak another language."""
        self.send({"kind": "progress", "text": text, "share": None, **more})

    def trouble(self, error: RegardError) -> None:
        """What went wrong beside the run, which goes on."""
        told = error.told()
        self.send({"kind": "trouble", "text": told.pop("error"), **told})

    def token(self, text: str, number: int, of: int) -> None:
        self.send({"kind": "token", "text": text, "number": number, "of": of})

    def send(self, event: dict[str, Any]) -> None:
        if self._tell is not None:
            self._tell(event)

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
            raise Stopped("the run was stopped")
        if time.monotonic() - self.started > SECONDS:
            raise Refusal(
                f"the model wrote for more than {SECONDS:.0f} seconds and was stopped; ask for fewer tokens"
            ).coded("model.slow", seconds=round(SECONDS))
        if self.give_way is not None:
            self.give_way()


@runtime_checkable
class Opened(Protocol):
    """A model that can run here."""

    model: Any  # the module

    def run(self, ask: RunAsk, telling: RunMonitor) -> Ran:
        """Read the text, and write where the model writes."""
        ...

    def again(self, given: dict[str, Any], layers: list[str], edits: list[EditOf], telling: RunMonitor) -> Changed:
        """Run what was given before once more, as it is and under edits; `layers` are the names that edits count."""
        ...


def output(text: str | None = None, next: Chances | None = None, classes: Chances | None = None) -> dict[str, Any]:  # noqa: A002
    """As source.ts has it."""
    return {"text": text, "next": next, "classes": classes}
