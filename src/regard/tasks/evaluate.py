"""Evaluation of a trained model, by the task that it was trained on."""

from typing import Any

from regard.models import store
from regard.tasks.base import BaseTask
from regard.tasks.registry import names, task_named
from regard.tasks.text_translator import locate_translator
from regard.training.settings import settings_from


def evaluate(where: str, **options: Any) -> dict[str, Any]:
    """Scores of a model: embedded, in its own folder, or in that of a run. Which options there are its task says.

    >>> evaluate("induction")["scores"]["accuracy"] > 0.99
    True
    """
    task = task_of(where)
    return task.evaluate(locate_translator(where), settings_from(task.options, options))


def task_of(where: str) -> BaseTask:
    """The task that a model was trained on; a model that does not say so is taken for a translator."""
    described = store.describe(locate_translator(where))
    name = described.get("task", described.get("name"))
    return task_named(name if name in names() else "translate")
