"""Runs of training whose maps can be looked at, step by step."""

import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.app.protocol.messages import TrainingCard
from regard.app.protocol.refusal import Refusal
from regard.errors import RegardError
from regard.models.layout import RUN as MANIFEST
from regard.tasks.read_and_written import EXAMPLES
from regard.training.run import RunFolder

LOSSES = 400  # points of a curve that a page draws
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

    def scores(self) -> dict[int, dict[str, float]]:
        """What each validation measured."""
        return {
            int(line["step"]): {str(key): float(value) for key, value in line["validation"].items()}
            for line in self.run.history()
            if isinstance(line.get("validation"), dict)
        }

    def losses(self) -> list[tuple[int, float]]:
        """The loss of training, line by line of the history; of very many, some."""
        lines = [
            (int(line["step"]), float(line["loss"]))
            for line in self.run.history()
            if isinstance(line.get("loss"), int | float)
        ]
        known = [(step, loss) for step, loss in lines if math.isfinite(loss)]
        return [*known[: -1 : -(-len(known) // LOSSES) or 1], *known[-1:]]

    def describe(self) -> TrainingCard:
        """What a page is told of it."""
        steps, scores = self.steps(), self.scores()
        examples = max((len(trace_names(folder)) for folder in steps.values()), default=0)
        return TrainingCard(
            id=self.id,
            name=self.folder.resolve().name,
            steps=list(steps),
            examples=examples,
            scores=[keep_finite(scores.get(step, {})) for step in steps],
            losses=self.losses(),
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


def keep_finite(scores: dict[str, float]) -> dict[str, float]:
    """JSON knows no infinity."""
    return {key: value for key, value in scores.items() if value - value == 0}


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
        """What a page is told of each."""
        return [one.describe() for one in self.all()]

    def find(self, wanted: str) -> Training:
        for one in self.all():
            if one.id == wanted:
                return one
        raise Refusal("there is no such run of training here; open the list again", 404).with_code("training.none")
