"""What a run writes into its folder while it goes on, and what the system says against it, in one sentence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regard.errors import RegardError, RunError
from regard.training import checkpoint as checkpoints
from regard.training import due
from regard.training.checkpoint import Checkpoint
from regard.training.clock import Speed
from regard.training.run import HISTORY, TIMING, RunFolder
from regard.training.settings import Settings
from regard.training.task import Better


class RunRecorder:
    """Writes the history and the checkpoints of a run. `notice` hears what is worth a sentence."""

    def __init__(self, run: RunFolder, settings: Settings, notice: Callable[[str], None]) -> None:
        self.run, self.settings, self.notice = run, settings, notice

    @contextmanager
    def guard_writes(self, what: Path) -> Iterator[None]:
        """Write nothing where another process has begun to; an error of the system is told with what to do."""
        try:
            self.run.check()
            yield
        except (OSError, RegardError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError):
                raise
            raise RunError(
                f"{what} could not be written ({cause.strerror or cause}); the last good checkpoint is "
                f"{self.last_good()}; make room, then --resume {self.run.folder}"
            ) from error

    def record(self, line: dict[str, Any], name: str = HISTORY) -> None:
        with self.guard_writes(self.run.folder / name):
            self.run.write(line, name)

    def record_start(self, step: int, better: Better, facts: dict[str, Any]) -> None:
        """That a process begins to train: when, after which step, and what it was told that run.json does not know."""
        begun, now = self.run.describe()["settings"], self.settings.model_dump(mode="json")
        line = {"step": step, "start": datetime.now(UTC).isoformat(timespec="seconds"), **facts}
        anew = {name: value for name, value in now.items() if name in begun and value != begun[name]}
        self.record(line | {"score": better.score, "more": better.more, "settings": anew}, TIMING)

    def record_speed(self, step: int, speed: Speed) -> None:
        """How long it took so far, where this process has made an update."""
        if speed.updates:
            self.record({"step": step, **speed._asdict()}, TIMING)

    def record_end(self, step: int, how: str, speed: Speed, error: BaseException | None = None) -> None:
        """That a process ends, and how. An `error` by which it does is what its user hears of, whatever is written."""
        why = {} if error is None else {"why": " ".join(str(error).split())[:1000] or type(error).__name__}
        with nullcontext() if error is None else suppress(OSError, RegardError):
            self.record({"step": step, "end": how, **why, **speed._asdict()}, TIMING)

    def cut(self, step: int) -> None:
        with self.guard_writes(self.run.folder / HISTORY):
            self.run.cut(step)

    def save(self, checkpoint: Checkpoint) -> None:
        with self.guard_writes(self.run.checkpoints / checkpoints.name_of(checkpoint.step)):
            checkpoints.write(self.run.checkpoints, checkpoint, check=self.run.check)

    def prune(self, step: int, best: int) -> None:
        """Keep the last checkpoints that were planned, the best, and the one of this step."""
        whole = map(checkpoints.step_of, checkpoints.list_usable(self.run.checkpoints))
        planned = [one for one in whole if due.keeps(self.settings, one)]
        keep = max(self.settings.keep_checkpoints, self.settings.average_checkpoints)
        checkpoints.prune(self.run.checkpoints, {*planned[-keep:], best, step})

    def newest(self) -> Checkpoint | None:
        """The checkpoint to go on from; what lies beside it and is not used is told, once."""
        folder = self.run.checkpoints
        for name in checkpoints.list_strays(folder):
            self.notice(f"{folder / name} is no checkpoint, and is left alone")
        return checkpoints.newest(folder, self.note_skipped)

    def note_skipped(self, place: Path, error: Exception) -> None:
        self.notice(f"{place} is no whole checkpoint, and is not used ({error.__cause__ or error})")

    def last_good(self) -> str:
        whole = checkpoints.list_usable(self.run.checkpoints)
        return str(whole[-1]) if whole else "none"
