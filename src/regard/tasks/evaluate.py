"""Evaluation of a trained model, by the task that it was trained on."""

from pathlib import Path
from typing import Any

from regard.models import store
from regard.tasks.base import BaseTask
from regard.tasks.registry import names, task_named
from regard.tasks.text_translator import locate_trained
from regard.training.settings import settings_from


def evaluate(where: str, **options: Any) -> dict[str, Any]:
    """Scores of a model: embedded, in its own folder, or in that of a run. Which options there are its task says.

    >>> evaluate("induction")["scores"]["accuracy"] > 0.99
    True
    """
    task = task_of(where)
    return task.evaluate(folder_of(where), settings_from(task.options, options))


def task_of(where: str) -> BaseTask:
    """The task that a model was trained on; a model that does not say so is taken for a translator."""
    manifest = store.describe(folder_of(where))
    name = manifest.get("task", manifest.get("name"))
    return task_named(name if name in names() else "translate")


def folder_of(where: str) -> Path:
    """The folder of a trained model."""
    return locate_trained(where, noun="trained model", train="regard train TASK")
