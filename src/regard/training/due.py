"""At which steps a run writes, shows, validates and saves: functions of its settings and the step alone.

Nothing here asks what happened, so a run that was stopped and goes on does all of it at the same steps.
"""

from regard.training.settings import Settings


def is_early(step: int) -> bool:
    """1, 2, 5, 10, 20, 50, …: close together at first, when much happens, and however rarely the rest is written.

    >>> [step for step in range(201) if is_early(step)]
    [1, 2, 5, 10, 20, 50, 100, 200]
    """
    return str(step).rstrip("0") in ("1", "2", "5")


def logs(settings: Settings, step: int) -> bool:
    """Whether a line of the history is written after this step."""
    return step > 0 and (step % settings.log_every == 0 or is_early(step) or step == settings.steps)


def validates(settings: Settings, step: int) -> bool:
    return step > 0 and (step % settings.eval_every == 0 or step == settings.steps)


def shows(settings: Settings, step: int) -> bool:
    """Whether what the model attends to is written: also before the first step."""
    return step == 0 or is_early(step) or validates(settings, step)


def keeps(settings: Settings, step: int) -> bool:
    """Whether a checkpoint of this step is one of those that are kept and averaged."""
    return step > 0 and step % settings.save_every == 0


def saves(settings: Settings, step: int) -> bool:
    """Whether a checkpoint is written: also before each validation, so that the best weights can always be had."""
    return keeps(settings, step) or validates(settings, step)


def validations_left(settings: Settings, step: int) -> int:
    """How many validations follow after this step, those that choose the final weights included.

    >>> validations_left(Settings(steps=23, eval_every=5), 10)  # 15, 20, 23; and the best weights once more
    4
    >>> validations_left(Settings(steps=20, eval_every=5, average_checkpoints=2), 10)  # 15, 20; the average, the best
    4
    """
    every, steps = settings.eval_every, settings.steps
    planned = max(steps // every - step // every, 0) + (step < steps and steps % every != 0)
    return planned + (2 if settings.average_checkpoints else 1)
