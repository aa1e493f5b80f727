"""What there is to learn, by name."""

from regard.tasks.registry import names, task_named

__all__ = ["names", "task_named"]
