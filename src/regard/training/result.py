"""Which weights are the result of a run: the best that it saw, or the average of the last checkpoints."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from regard.errors import RunError
from regard.training import checkpoint as checkpoints
from regard.training import due
from regard.training.checkpoint import DamagedCheckpoint
from regard.training.restore import average_of
from regard.training.settings import Settings

Scores = dict[str, float]
State = dict[str, Tensor]


class ChosenWeights(NamedTuple):
    """What was taken, how good it is, and what could not be read."""

    which: str
    scores: Scores
    lost: list[str]


def choose_weights(
    folder: Path,
    settings: Settings,
    last: int,
    best: int,
    score: Callable[[State], Scores],
    beats_best: Callable[[Scores], bool],
) -> ChosenWeights:
    """The average where it is better than the best weights, else these, as `score` was given them last.

    Which checkpoints are averaged follows from the settings and the last step, not from which of them happen to be
    there: one that was saved because the run was stopped is not among them.
    """
    lost: list[str] = []
    states: dict[int, State] = {}

    def has(step: int) -> bool:
        if step not in states:
            try:
                tensors = checkpoints.read(folder / checkpoints.name_of(step)).tensors
                states[step] = {name: value for name, value in tensors.items() if name.startswith("model.")}
            except DamagedCheckpoint as error:
                lost.append(f"the checkpoint of step {step} cannot be used ({error.__cause__ or error})")
                return False
        return True

    there = [checkpoints.step_of(place) for place in checkpoints.list_checkpoints(folder)]
    planned = [step for step in there if step <= last and (due.keeps(settings, step) or step == last)]
    averaged = (
        [step for step in planned[-settings.average_checkpoints :] if has(step)] if settings.average_checkpoints else []
    )
    single = next((step for step in (best, last, *reversed(planned)) if has(step)), None)
    if single is None:
        raise RunError(f"no checkpoint in {folder} can be read, so the run has no result; begin it again")
    which = f"step {single}"
    if averaged:
        average = f"the average of the last {len(averaged)} checkpoints"
        scores = score(average_of([states[step] for step in averaged]))
        if beats_best(scores) or single != best:  # there is nothing better to take instead
            return ChosenWeights(average, scores, lost)
        which = f"{which}, which is better than {average}"  # early weights in it, as where --steps was cut
    return ChosenWeights(which, score(average_of([states[single]])), lost)
