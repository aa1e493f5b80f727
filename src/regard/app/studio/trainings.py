"""Runs of training whose maps can be looked at, step by step."""

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.app.protocol.messages import BestStep, TrainingCard
from regard.app.protocol.refusal import Refusal
from regard.errors import RegardError
from regard.models.layout import RUN as MANIFEST
from regard.tasks.read_and_written import EXAMPLES
from regard.training.curves import thin_points
from regard.training.run import RunFolder
from regard.training.settings import format_value
from regard.training.status import read_status

POINTS = 400  # of a curve that a page draws
SCORES = 12  # curves of scores at most
LONGEST = 200  # letters of a setting
STEP = re.compile(r"step-(\d{1,12})", re.ASCII)


def identity_of(path: Path) -> str:
    """An opaque name for a file or folder, the same after a restart."""
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]


class Training:
    """One folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, RunFolder.open(folder)
        self.id = identity_of(folder)

    def steps(self) -> dict[int, Path]:
        """The folders of what was shown, by step."""
        folders = {}
        for folder in sorted(self.run.shown.glob("step-*")) if self.run.shown.is_dir() else []:
            matched = STEP.fullmatch(folder.name)
            if matched is not None and (folder / EXAMPLES).is_file():
                folders[int(matched[1])] = folder
        return dict(sorted(folders.items()))

    def describe(self) -> TrainingCard:
        """What a page is told of it; a `RunError` where the folder cannot be read any more."""
        now, steps = time.time(), self.steps()
        run = read_status(self.folder, now)
        curves = {name: thin_points(points, POINTS) for name, points in list(run.curves.scores.items())[:SCORES]}
        best = None if run.best is None or not math.isfinite(run.best.value) else BestStep(**run.best._asdict())
        return TrainingCard(
            id=self.id,
            name=self.folder.resolve().name,
            task=run.task,
            state=run.state,
            step=run.step,
            total=run.steps,
            best=best,
            steps=list(steps),
            examples=max((len(trace_names(folder)) for folder in steps.values()), default=0),
            losses=thin_points(run.curves.losses, POINTS),
            scores=curves,
            speeds=thin_points(run.curves.speeds, POINTS),
            seconds=run.seconds,
            ends=None if run.seconds_left is None else round(now + run.seconds_left),
            settings={name: describe_setting(value) for name, value in run.settings.items()},
        )

    def trace(self, step: int, example: int) -> Path:
        """The file of one example at one step."""
        folder = self.steps().get(step)
        if folder is None:
            raise Refusal(
                f"nothing was shown at step {step} of {self.folder.name}; choose one that is listed", 404
            ).with_code("training.step", step=step, name=self.folder.name)
        names = trace_names(folder)
        if not 0 <= example < len(names):
            raise Refusal(
                f"step {step} shows {len(names)} examples, but {example} was asked for; count from 0", 404
            ).with_code("training.example", step=step, examples=len(names), example=example)
        file = (folder / names[example]).resolve()
        if not file.is_relative_to(self.folder.resolve()) or not file.is_file():
            raise Refusal(
                f"the trace of example {example} at step {step} is not in the run's folder any more", 404
            ).with_code("training.moved", step=step, example=example)
        return file

    def about(self, step: int, example: int) -> tuple[str, str]:
        """What was read, and what was written."""
        rows = read_rows(self.steps()[step])
        one = rows[example] if example < len(rows) else {}
        return tuple(" ".join(map(str, one.get(key, []))) for key in ("source", "written"))  # type: ignore[return-value]


def read_rows(folder: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads((folder / EXAMPLES).read_bytes())
    except (OSError, ValueError):
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def trace_names(folder: Path) -> list[str]:
    """The names of the traces of one step; a model that looks at nothing has none."""
    return [row["trace"] for row in read_rows(folder) if isinstance(row.get("trace"), str)]


def describe_setting(value: Any) -> str:
    """A setting as a page shows it, however long somebody's value is."""
    return format_value(tuple(value) if isinstance(value, list) else value)[:LONGEST]


def start_time(file: Path) -> float:
    """When a run began, as the clock was then; it decides nothing but what stands in front."""
    try:
        return file.stat().st_mtime
    except OSError:  # taken away meanwhile
        return 0.0


class Trainings:
    """By opaque name: folders that were named, and those in a folder of runs."""

    def __init__(self, folders: Iterable[Path] = (), among: Path | None = None) -> None:
        self.folders, self.among = list(folders), among

    def all(self) -> list[Training]:
        """Those that are there now: a run may begin while the server is open."""
        inside = list(self.among.glob(f"*/{MANIFEST}")) if self.among is not None and self.among.is_dir() else []
        inside.sort(key=lambda file: (-start_time(file), file))  # the one that began last stands in front
        trainings: dict[str, Training] = {}
        for folder in [*self.folders, *(file.parent for file in inside)]:
            try:
                one = Training(folder)
            except RegardError:
                continue  # a run of another version, or one that was taken away
            trainings.setdefault(one.id, one)
        return list(trainings.values())

    def list_trainings(self) -> list[TrainingCard]:
        """What a page is told of each; one that cannot be read any more is left out."""
        cards = []
        for one in self.all():
            with suppress(RegardError, OSError):
                cards.append(one.describe())
        return cards

    def find(self, wanted: str) -> Training:
        for one in self.all():
            if one.id == wanted:
                return one
        raise Refusal("there is no such run of training here; open the list again", 404).with_code("training.none")
