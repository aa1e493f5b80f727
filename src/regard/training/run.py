"""A run as a folder that explains itself.

run.json           what was learnt by which settings, and by which version of this file format
environment.json   where it ran
history.jsonl      what happened, a line each: the same lines whenever the run is repeated or resumed
timing.jsonl       when each process began, how fast it was and how it ended, which is never the same twice
checkpoints/       everything that is needed to go on
shown/             a few fixed examples and what the model attended to, at each validation
model/             the result: opens by itself
"""

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from regard.errors import RunError
from regard.files import make_folder, put, remove, sweep, sync_folder
from regard.models.layout import RUN, RUN_MODEL
from regard.training import lock
from regard.training.manifest import OtherVersionError, seal, unseal

FORMAT = "regard-run/2"
MANIFEST, ENVIRONMENT, HISTORY, TIMING = RUN, "environment.json", "history.jsonl", "timing.jsonl"
MODEL = RUN_MODEL


class RunFolder:
    """One folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints, self.shown, self.model = folder / "checkpoints", folder / "shown", folder / MODEL
        self.claim: lock.Claim | None = None
        self.before: set[str] = set()

    @contextmanager
    def lock_folder(self, *, new: bool = False) -> Iterator[None]:
        """Nobody else trains here meanwhile; a new run makes its folder, and takes it away where it did not begin."""
        if new:
            self.must_be_free()
        else:
            self.describe()
        made = not self.folder.exists()
        with ExitStack() as last:
            if made:
                last.callback(self.leave_if_empty)
            try:
                make_folder(self.folder)
                self.claim = last.enter_context(lock.hold_lock(self.folder))
                self.before = {path.name for path in self.folder.iterdir()}
                self.sweep()
            except OSError as error:
                raise RunError(f"{self.folder} cannot be written to ({error.strerror}); name another folder") from error
            try:
                yield
            finally:
                if made and not (self.folder / MANIFEST).exists():
                    self.claim.give_up()
                self.claim = None

    def leave_if_empty(self) -> None:
        with suppress(OSError):  # one that is not empty stays
            self.folder.rmdir()

    def must_be_free(self) -> None:
        if (self.folder / MANIFEST).exists():
            where = self.folder
            raise RunError(f"{where} already holds a run; go on with --resume {where}, or name another folder")

    def begin(self, task: str, settings: dict[str, Any]) -> None:
        """Write what the run is. Who calls is alone here."""
        self.must_be_free()  # somebody may have been quicker
        self.check()
        try:
            put(self.folder / MANIFEST, seal({"format": FORMAT, "task": task, "settings": settings}))
            put(self.folder / ENVIRONMENT, (json.dumps(environment(), indent=1) + "\n").encode())
        except OSError as error:
            self.withdraw()
            raise RunError(f"{self.folder} cannot be written to ({error.strerror}); name another folder") from error

    def withdraw(self) -> None:
        """Take back what was written since `begin`: a vocabulary of this try would be used by the next."""
        for path in list(self.folder.iterdir()):
            if path.name not in self.before:
                remove(path)

    def check(self) -> None:
        """Refuse to write where another process has begun to."""
        if self.claim is not None:
            self.claim.check()

    def sweep(self) -> None:
        """Take away what was being written when a process ended."""
        for folder in (self.folder, self.checkpoints, self.model):
            sweep(folder)
        for folder in list(self.shown.glob("step-*")):
            sweep(folder, "*")

    @classmethod
    def open(cls, folder: Path) -> "RunFolder":
        """A run that was begun before."""
        run = cls(folder)
        run.describe()
        return run

    def describe(self) -> dict[str, Any]:
        """What stands in run.json: the task and its settings."""
        path = self.folder / MANIFEST
        try:
            return unseal(path.read_bytes(), FORMAT)
        except OtherVersionError as error:
            raise RunError(f"{path} {error}") from error
        except OSError as error:
            raise RunError(f"{self.folder} holds no run that can be read; name the folder of a run") from error
        except ValueError as error:
            raise RunError(f"{path} is damaged ({error}); put back a copy of it, or begin a new run") from error

    # History

    def cut(self, step: int) -> None:
        """Forget what was written of this step and of later ones: it will be written again."""
        for name, last in ((HISTORY, step - 1), (TIMING, step)):
            path = self.folder / name
            if path.exists():
                kept = [line for line in whole_lines(path) if int(json.loads(line)["step"]) <= last]
                put(path, "".join(line + "\n" for line in kept).encode())

    def write(self, line: dict[str, Any], name: str = HISTORY) -> None:
        path = self.folder / name
        new = not path.exists()
        with path.open("ab") as file:
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_folder(self.folder)

    def history(self) -> list[dict[str, Any]]:
        """Every line of the history."""
        return read_lines(self.folder / HISTORY)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What stands in a file of lines, each of a step; nothing where there is no file yet."""
    return [json.loads(line) for line in whole_lines(path)] if path.exists() else []


def whole_lines(path: Path) -> list[str]:
    """The lines that were finished; what a crash cut off is not among them, nor what is no line of a step."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    found = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            told = json.loads(line)
            if isinstance(told, dict) and isinstance(told.get("step"), int):
                found.append(line)
    return found


def environment() -> dict[str, Any]:
    """The machine and the versions that decide the last bits of every number."""
    import numpy
    import torch

    from regard import __version__

    return {
        "regard": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }
