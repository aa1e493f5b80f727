"""The tasks by name. Their modules load when one of them is asked for."""

import difflib
from importlib import import_module

from regard.errors import ConfigError
from regard.training.task import Task

HOMES = {
    "translate": "regard.tasks.translate:Translate",
    "copy": "regard.tasks.sequences:Copy",
    "reverse": "regard.tasks.sequences:Reverse",
    "sort": "regard.tasks.sequences:Sort",
}


def names() -> list[str]:
    """Every task there is.

    >>> names()
    ['copy', 'reverse', 'sort', 'translate']
    """
    return sorted(HOMES)


def task_named(name: str) -> Task:
    """The task of this name, or a `ConfigError` that names the nearest.

    >>> task_named("translat")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no task 'translat'; did you mean 'translate'?
    """
    if name not in HOMES:
        near = difflib.get_close_matches(name, HOMES, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}"
        raise ConfigError(f"there is no task {name!r}; {advice}")
    home, _, kind = HOMES[name].partition(":")
    found: Task = getattr(import_module(home), kind)()
    return found
