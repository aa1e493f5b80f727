"""What to type next: the exact commands for a run, as a shell takes them."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.tasks.registry import TASKS, task_named
from regard.training.status import RunStatus

CHANGEABLE = ("steps", "num_workers", "tensorboard", "device")  # what a run that goes on may be told anew


def list_next(run: RunStatus) -> list[str]:
    """The commands that make sense for a run in its state, the best one first.

    A run that goes on can be watched, one that does not can be resumed, one that is over can be used, by what its task
    names as the next command, and evaluated.
    """
    watch = write_command(["serve", str(run.folder)])
    if run.state == "running" or run.task not in TASKS:
        return [watch]
    if run.state == "finished":
        folder = write_command([str(run.folder)], program=())
        own = " ".join([*program_words(), task_named(run.task).next_command(folder)])
        return list(dict.fromkeys([own, write_command(["evaluate", str(run.folder)]), watch]))
    return [write_resume(run.task, run.folder, run.told_anew), watch]


def write_resume(task: str, folder: Path, told_anew: Mapping[str, Any]) -> str:
    """The command that goes on with a run, with what was told anew, which the folder does not know.

    >>> write_resume("copy", Path("runs/copy-1"), {"steps": 9, "tensorboard": True, "seed": 3}).partition("regard ")[2]
    'train copy --resume runs/copy-1 --steps 9 --tensorboard'
    """
    words = ["train", task, "--resume", str(folder)]
    for key, value in told_anew.items():
        if key in CHANGEABLE:
            flag = key.replace("_", "-")
            words += (
                [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
            )
    return write_command(words)


def write_command(words: Sequence[str], program: Sequence[str] | None = None) -> str:
    """These words as a shell of this system reads them, after those by which this program was called."""
    whole = [*(program_words() if program is None else program), *words]
    return subprocess.list2cmdline(whole) if os.name == "nt" else shlex.join(whole)


def program_words() -> list[str]:
    """How this command was called."""
    return ["python", "-m", "regard"] if Path(sys.argv[0]).name == "__main__.py" else ["regard"]
