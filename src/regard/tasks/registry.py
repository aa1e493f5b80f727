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
    "classify": TaskEntry(
        "say which class a text is of, from labelled texts",
        "regard.tasks.classify:Classify",
        (TaskCommand("classify", "Classify texts, or each line of a file.", "regard.cli.classify:classify"),),
    ),
    "summarise": TaskEntry(
        "write, or copy, a summary of a text",
        "regard.tasks.summarise:Summarise",
        (
            TaskCommand(
                "summarise", "Write the summary of a text, and say what was copied.", "regard.cli.summarise:summarise"
            ),
        ),
    ),
    "picture": TaskEntry(
        "say which class a picture is of, from labelled pictures",
        "regard.tasks.picture:PictureTask",
        (
            TaskCommand(
                "classify-image", "Say which class pictures are of.", "regard.cli.classify_image:classify_image"
            ),
        ),
    ),
    "caption": TaskEntry(
        "write what a picture shows, from pictures with captions or drawn shapes",
        "regard.tasks.caption:Caption",
        (TaskCommand("caption", "Write what pictures show, and where it was seen.", "regard.cli.caption:caption"),),
    ),
    "copy": TaskEntry("repeat a sequence", "regard.tasks.sequences:Copy"),
    "reverse": TaskEntry("write a sequence backwards", "regard.tasks.sequences:Reverse"),
    "sort": TaskEntry("write a sequence in order", "regard.tasks.sequences:Sort"),
    "induction": TaskEntry("continue a random string that repeats", "regard.tasks.induction:Induction"),
    "write": TaskEntry("write on after a beginning, from plain text", "regard.tasks.language_write:Write"),
    "answer": TaskEntry(
        "answer a question by words of a passage",
        "regard.tasks.answer:AnswerTask",
        (TaskCommand("answer", "Answer questions by words of a passage.", "regard.cli.answer:answer"),),
    ),
    "embed": TaskEntry(
        "give texts that mean the same vectors that are near, from pairs or plain text",
        "regard.tasks.embed:Embed",
        (
            TaskCommand("embed", "Turn texts, or each line of a file, into vectors.", "regard.cli.embed:embed"),
            TaskCommand("similar", "Compare texts by what they mean: a table of cosines.", "regard.cli.embed:similar"),
            TaskCommand("search", "Find the lines of a file that mean the same as a text.", "regard.cli.embed:search"),
        ),
    ),
    "fill": TaskEntry(
        "fill in hidden words, from plain text",
        "regard.tasks.fill:Fill",
        (TaskCommand("fill", "Fill in the words that [MASK] hides in a text.", "regard.cli.fill:fill"),),
    ),
    "pretrain": TaskEntry(
        "read plain text, to go on from in other tasks: hidden words, next sentence", "regard.tasks.pretrain:Pretrain"
    ),
}


def names() -> list[str]:
    """Every task there is.

    >>> names()
    ['answer', 'caption', 'classify', 'copy', ...
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
    ['translate', ...
    """
    return {command.name: command for entry in TASKS.values() for command in entry.commands}
