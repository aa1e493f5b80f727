"""The registry of tasks: one entry says where a task lies, what it learns, and which commands it adds to `regard`.

Adding a task is its file and one entry here. Nothing of a task is imported before it is used, so that help is instant.
"""

import difflib
from typing import TYPE_CHECKING, NamedTuple

from regard.errors import ConfigError
from regard.extras import load_named

if TYPE_CHECKING:
    from regard.tasks.base import BaseTask


class TaskCommand(NamedTuple):
    """A command that a task adds: `regard NAME …`. Its function is annotated as typer reads it."""

    name: str
    about: str  # what the list of commands says of it
    function: str  # "module:name"


class TaskEntry(NamedTuple):
    """What is known of a task before it is imported."""

    about: str  # what it learns
    task: str  # "module:name" of a class that extends BaseTask
    commands: tuple[TaskCommand, ...] = ()


TASKS: dict[str, TaskEntry] = {
    "translate": TaskEntry(
        "write a sentence in another language",
        "regard.tasks.translate:Translate",
        (TaskCommand("translate", "Translate texts, or each line of a file.", "regard.cli.translate:translate"),),
    ),
    "copy": TaskEntry("repeat a sequence", "regard.tasks.sequences:Copy"),
    "reverse": TaskEntry("write a sequence backwards", "regard.tasks.sequences:Reverse"),
    "sort": TaskEntry("write a sequence in order", "regard.tasks.sequences:Sort"),
    "induction": TaskEntry("continue a random string that repeats", "regard.tasks.induction:Induction"),
    "write": TaskEntry("write on after a beginning, from plain text", "regard.tasks.language_write:Write"),
    "fill": TaskEntry("fill in hidden words, from plain text", "regard.tasks.fill:Fill"),
}


def names() -> list[str]:
    """Every task there is.

    >>> names()
    ['copy', 'fill', 'induction', 'reverse', 'sort', 'translate', 'write']
    """
    return sorted(TASKS)


def task_named(name: str) -> "BaseTask":
    """The task of this name, or a `ConfigError` that names the nearest.

    >>> task_named("translat")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no task 'translat'; did you mean 'translate'?
    """
    if name not in TASKS:
        near = difflib.get_close_matches(name, TASKS, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}"
        raise ConfigError(f"there is no task {name!r}; {advice}")
    task: BaseTask = load_named(TASKS[name].task)()
    return task


def task_commands() -> dict[str, TaskCommand]:
    """Every command that a task adds, by its name.

    >>> list(task_commands())
    ['translate']
    """
    return {command.name: command for entry in TASKS.values() for command in entry.commands}
