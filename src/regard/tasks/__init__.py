"""Tasks by name: data, model, loss, scores and what to show."""

from regard.tasks.registry import names, task_named

__all__ = ["names", "task_named"]
