"""A run as a folder that explains itself.

run.json           what was learnt by which settings, and by which version of this file format
environment.json   where it ran
history.jsonl      what happened, a line each: the same lines whenever the run is repeated or resumed
timing.jsonl       how long it took, which is never the same twice
checkpoints/       everything that is needed to go on
shown/             a few fixed examples and what the model attended to, at each validation
model/             the result: opens by itself
"""

import fcntl
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from regard.errors import RunError
from regard.models.files import put

FORMAT = "regard-run/1"
MANIFEST, ENVIRONMENT, HISTORY, TIMING = "run.json", "environment.json", "history.jsonl", "timing.jsonl"
LOCK, MODEL = ".lock", "model"


class Run:
    """One folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints, self.shown, self.model = folder / "checkpoints", folder / "shown", folder / MODEL

    @classmethod
    def begin(cls, folder: Path, task: str, settings: dict[str, Any]) -> "Run":
        """A new run in a folder that holds none yet."""
        if (folder / MANIFEST).exists():
            raise RunError(f"{folder} already holds a run; go on with --resume {folder}, or name another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written = json.dumps({"format": FORMAT, "task": task, "settings": settings}, indent=1, ensure_ascii=False)
            put(folder / MANIFEST, (written + "\n").encode())
            put(folder / ENVIRONMENT, (json.dumps(environment(), indent=1) + "\n").encode())
        except OSError as error:
            raise RunError(f"{folder} cannot be written to ({error.strerror}); name another folder") from error
        return cls(folder)

    def withdraw(self) -> None:
        """Take back what `begin` wrote."""
        for name in (MANIFEST, ENVIRONMENT):
            (self.folder / name).unlink(missing_ok=True)

    @classmethod
    def open(cls, folder: Path) -> "Run":
        """A run that was begun before."""
        run = cls(folder)
        run.described()
        return run

    def described(self) -> dict[str, Any]:
        """What stands in run.json: the task and its settings."""
        path = self.folder / MANIFEST
        try:
            found = json.loads(path.read_bytes())
        except OSError as error:
            raise RunError(f"{self.folder} holds no run that can be read; name the folder of a run") from error
        except ValueError as error:
            raise RunError(f"{path} is no JSON ({error}); the run cannot be read") from error
        kind = found.get("format") if isinstance(found, dict) else None
        if kind != FORMAT:
            raise RunError(f"{path} has format {kind!r}, but {FORMAT!r} is read here; use the version that wrote it")
        return found

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else trains here meanwhile: the lock goes with the process, however it ends."""
        try:
            file = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written to ({error.strerror}); train in another folder") from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                whose = os.read(file, 32).decode(errors="replace").strip() or "unknown"
                raise RunError(
                    f"another process (id {whose}) is training in {self.folder}; wait for it, or name another folder"
                ) from error
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
            yield
        finally:
            os.close(file)

    # History

    def cut(self, step: int) -> None:
        """Forget what was written after this step: it will be written again."""
        for name in (HISTORY, TIMING):
            path = self.folder / name
            if path.exists():
                kept = [line for line in whole_lines(path) if int(json.loads(line)["step"]) <= step]
                put(path, "".join(line + "\n" for line in kept).encode())

    def write(self, line: dict[str, Any], name: str = HISTORY) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def history(self) -> list[dict[str, Any]]:
        """Every line of the history."""
        path = self.folder / HISTORY
        return [json.loads(line) for line in whole_lines(path)] if path.exists() else []


def whole_lines(path: Path) -> list[str]:
    """The lines that were finished; what a crash cut off is not among them."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    found = []
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            if "step" in json.loads(line):
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
