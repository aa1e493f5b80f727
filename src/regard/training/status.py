"""What can be said of a run by looking at its folder, while it goes on and afterwards. Nothing is written."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.errors import RunError
from regard.training import checkpoint, lock
from regard.training.curves import BestScore, Curves, find_best, is_number, read_curves, validations
from regard.training.run import ENVIRONMENT, HISTORY, MANIFEST, TIMING, RunFolder, read_lines
from regard.training.task import Better

State = Literal["running", "finished", "stopped", "failed"]
GONE = "its process is gone without a word: killed, out of memory, or the machine went down"


@dataclass(frozen=True)
class RunStatus:
    """A run as its folder tells it."""

    folder: Path
    task: str
    settings: dict[str, Any]  # as the last process that trained was told them
    told_anew: dict[str, Any]  # those of them that run.json does not know
    state: State
    why: str  # it failed; "" where it did not
    step: int
    steps: int
    saved: int | None  # step of the checkpoint from which it would go on
    better: Better | None  # the score that decides; None of a run that was made before runs wrote it down
    best: BestScore | None
    scores: dict[str, float]  # of the result, or of the last validation
    weights_of: str  # which weights are the result: "step 400", "the average of …"
    seconds: float  # all processes together, as far as what they made is still there
    seconds_left: float | None  # while it runs
    tokens_per_second: float | None
    parameters: int | None
    examples: int | None  # to learn from
    written: float  # when anything was last written, in seconds since 1970
    curves: Curves


def read_status(folder: Path, now: float | None = None) -> RunStatus:
    """What stands in the folder of a run; a `RunError` says in one sentence why it cannot be read."""
    run = RunFolder.open(folder)
    manifest, moment = run.describe(), time.time() if now is None else now
    task, begun = manifest.get("task"), manifest.get("settings")
    if not isinstance(task, str) or not isinstance(begun, dict):
        raise RunError(f"{folder / MANIFEST} names no task with settings; begin a new run")
    try:
        history, timing = read_lines(folder / HISTORY), read_lines(folder / TIMING)
        written = last_written(run)
    except OSError as error:
        raise RunError(f"{folder} cannot be read ({error.strerror}); make its files readable") from error
    start: dict[str, Any] = next((line for line in reversed(timing) if "start" in line), {})
    anew = dict(start["settings"]) if isinstance(start.get("settings"), dict) else {}
    settings = begun | anew
    saved = [checkpoint.step_of(place) for place in checkpoint.list_usable(run.checkpoints)]
    step = max([line["step"] for line in (*history, *timing)] + saved, default=0)
    better, result = read_better(start), read_result(run.model)
    state, why = judge(run, timing, result, step)
    measured, curves = validations(history), read_curves(history, timing)
    return RunStatus(
        folder=folder,
        task=task,
        settings=settings,
        told_anew=anew,
        state=state,
        why=why,
        step=step,
        steps=settings["steps"] if is_number(settings.get("steps")) else step,
        saved=saved[-1] if saved else None,
        better=better,
        best=find_best(history, better) if better is not None else None,
        scores=result.get("scores") or {} if state == "finished" else (measured[-1][1] if measured else {}),
        weights_of=str(result.get("weights_of", "")) if state == "finished" else "",
        seconds=add_seconds(timing),
        seconds_left=time_left(run, timing, moment) if state == "running" else None,
        tokens_per_second=curves.speeds[-1][1] if curves.speeds else None,
        parameters=whole_number(start.get("parameters")),
        examples=whole_number(start.get("examples")),
        written=written,
        curves=curves,
    )


def whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def judge(run: RunFolder, timing: list[dict[str, Any]], result: dict[str, Any], step: int) -> tuple[State, str]:
    """Whether a run goes on, came to its end, was stopped or failed; and why it failed."""
    if lock.is_held(run.folder):
        return "running", ""
    end = timing[-1].get("end") if timing else None
    if run.model.is_dir() and (end == "finished" or (end is None and result.get("steps", -1) == step)):
        return "finished", ""
    if end == "failed":
        return "failed", str(timing[-1].get("why", ""))
    return ("failed", GONE) if end is None and lock.owner_of(run.folder) else ("stopped", "")


def read_better(start: dict[str, Any]) -> Better | None:
    """The score that decides, as the last process that began has written it."""
    score, more = start.get("score"), start.get("more")
    return Better(score, more) if isinstance(score, str) and isinstance(more, bool) else None


def read_result(model: Path) -> dict[str, Any]:
    """What the manifest of the exported model says of it; nothing where there is none."""
    try:
        facts = json.loads((model / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(facts, dict):
        return {}
    scores = facts.get("scores")
    known = {str(k): float(v) for k, v in scores.items() if is_number(v)} if isinstance(scores, dict) else {}
    return facts | {"scores": known}


def add_seconds(timing: list[dict[str, Any]]) -> float:
    """The time of all processes that trained one after the other.

    >>> add_seconds([{"start": ""}, {"seconds": 5.0}, {"seconds": 9.0}, {"start": ""}, {"seconds": 2.5}])
    11.5
    """
    total = last = 0.0
    for line in timing:
        if "start" in line:
            total, last = total + last, 0.0
        elif is_number(line.get("seconds")):
            last = float(line["seconds"])
    return total + last


def time_left(run: RunFolder, timing: list[dict[str, Any]], now: float) -> float | None:
    """What the last line of this process estimates, less the time that has passed since."""
    for line in reversed(timing):
        if "start" in line:
            return None
        if is_number(line.get("seconds_left")):
            since = now - (run.folder / TIMING).stat().st_mtime
            return max(float(line["seconds_left"]) - max(since, 0.0), 0.0)
    return None


def last_written(run: RunFolder) -> float:
    """When anything was last written there."""
    names = (MANIFEST, ENVIRONMENT, HISTORY, TIMING)
    places = [*(run.folder / name for name in names), run.checkpoints, run.shown, run.model]
    return max((place.stat().st_mtime for place in places if place.exists()), default=0.0)
