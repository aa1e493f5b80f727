"""`regard train`: settings from flags and a file, one call, and what happens meanwhile shown live."""

import os
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from regard.cli.next_commands import CHANGEABLE, write_resume
from regard.cli.progress import report_progress
from regard.errors import ConfigError, RunError
from regard.tasks.base import BaseTask
from regard.tasks.registry import TASKS, names, task_named
from regard.training import checkpoint
from regard.training.fit import Result, fit
from regard.training.lock import LOCK
from regard.training.run import MANIFEST, RunFolder
from regard.training.settings import Settings, describe_settings, read_flags, read_toml, settings_from


def train_task(
    name: str, words: Sequence[str], *, config: Path | None, out: Path | None, resume: Path | None, quiet: bool
) -> int:
    """Train, and give back the exit code."""
    task = task_named(name)
    first = int(os.environ.get("RANK", "0")) == 0  # of several processes the first speaks
    given = (read_toml(config) if config else {}) | read_flags(words)
    settings = settings_from(task.settings, given) if resume is None else resume_settings(task, resume, given)
    with claim_folder(name, out, resume, first=first) as folder:
        return train(task, settings, folder, again=resume is not None, quiet=quiet or not first)


def train(task: BaseTask, settings: Settings, folder: Path, *, again: bool, quiet: bool) -> int:
    """Train in a folder, and say how it ended and how to go on."""
    try:
        with report_progress(quiet, folder) as tell:
            result = fit(task, settings, folder, resume=again, tell=tell)
    except KeyboardInterrupt:  # before the first step, while the result is made, or for the second time
        if not quiet:
            typer.echo(explain_stop(task.name, settings, folder, last_step(folder)), err=True)
        return 128 + signal.SIGINT
    if not quiet:
        if result.code:
            typer.echo(explain_stop(task.name, settings, folder, result.step), err=True)
        else:
            typer.echo(format_result(task, result))
    return result.code


@contextmanager
def claim_folder(name: str, out: Path | None, resume: Path | None, *, first: bool) -> Iterator[Path]:
    """The folder of the run: the one that was named, or a new one under runs/, which goes if nothing began there."""
    if out is not None or resume is not None:
        yield resume or out or Path()
        return
    if not first:  # told by the first process
        yield Path("runs")
        return
    runs = Path("runs")
    there = runs.exists()
    folder = make_run_folder(name, runs)
    try:
        yield folder
    finally:
        with suppress(OSError):
            if not (folder / MANIFEST).exists():
                (folder / LOCK).unlink(missing_ok=True)  # of a run that was refused
                folder.rmdir()
                if not there:
                    runs.rmdir()


def make_run_folder(name: str, runs: Path) -> Path:
    """A folder that did not exist yet; who makes it has it."""
    number = 1
    while True:
        folder = runs / f"{name}-{number}"
        try:
            runs.mkdir(exist_ok=True)
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1
        except OSError as error:
            raise RunError(f"{folder} cannot be made ({error.strerror}); name a folder with --out") from error


def resume_settings(task: BaseTask, folder: Path, given: dict[str, Any]) -> Any:
    """The settings of a run that goes on."""
    manifest = RunFolder.open(folder).describe()
    if manifest["task"] != task.name:
        raise ConfigError(f"{folder} is a run of {manifest['task']!r}, not of {task.name!r}; name its own task")
    settings_from(task.settings, manifest["settings"] | given)  # a name that does not exist is told as such
    other = sorted(set(given) - set(CHANGEABLE))
    if other:
        raise ConfigError(
            f"{other[0]} cannot change while a run goes on (only {', '.join(CHANGEABLE)} can); start a new run for it"
        )
    return settings_from(task.settings, manifest["settings"] | given)


def last_step(folder: Path) -> int | None:
    """The step of the last checkpoint that is whole."""
    whole = checkpoint.list_usable(folder / "checkpoints")
    return checkpoint.step_of(whole[-1]) if whole else None


def explain_stop(name: str, settings: Settings, folder: Path, step: int | None) -> str:
    """Where the run lies, and the command by which it goes on."""
    if not (folder / MANIFEST).exists():
        return "Stopped before anything was written."
    saved = "Stopped before anything was saved" if step is None else f"Saved at step {step}"
    return f"{saved} in {folder}; go on: {resume_command(name, settings, folder)}"


def resume_command(name: str, settings: Settings, folder: Path) -> str:
    """The command that goes on with a run, for a shell: with what was told anew, which the folder does not know."""
    begun = RunFolder.open(folder).describe()["settings"]
    now = settings.model_dump(mode="json")
    return write_resume(name, folder, {key: value for key, value in now.items() if value != begun.get(key)})


def format_result(task: BaseTask, result: Result) -> str:
    """The scores of a run that came to its end, and the command to try next."""
    scores = ", ".join(f"{key} {value:.4g}" for key, value in result.scores.items())
    return f"{scores} after {result.step} steps. Next: regard {task.next_command(shlex.quote(str(result.folder)))}"


def list_tasks(name: str | None) -> str:
    """Every task, or every setting of one."""
    if name is None:
        width = max(map(len, TASKS)) + 2
        lines = [f"{one:<{width}}{TASKS[one].about}" for one in names()]
        return "\n".join([*lines, "", "Settings of one: regard tasks NAME"])
    rows = describe_settings(task_named(name).settings)
    wide = max(len(row.flag) for row in rows) + 2
    return "\n".join(f"{row.flag:<{wide}}{row.about} [{row.default}]" for row in rows)
