"""A task that somebody adds: one file, one entry, and every command knows it."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import typer
from pydantic import Field

from regard.data import vocabulary
from regard.errors import ModelError
from regard.models import GPTConfig, store
from regard.tasks import registry
from regard.tasks.base import BaseTask, EvaluationOptions
from regard.tasks.translate import Translate
from regard.training.loss import Loss, smoothed_loss
from regard.training.settings import Settings, with_defaults
from regard.training.task import Better
from tests.cli.run import run
from tests.tasks.tiny import copied, run_of

# What a task's file holds: here one that learns to count.


@with_defaults(steps=3, warmup_steps=1, eval_every=2, save_every=2)
class CountSettings(Settings):
    top: int = Field(9, ge=3, description="largest number")


class CountOptions(EvaluationOptions):
    above: int = Field(0, ge=0, description="smallest number to ask for")


class PreparedCount:
    better, left_out = Better("loss", more=False), 0

    def __init__(self, settings: CountSettings) -> None:
        self.config = GPTConfig(settings.top + 1, width=6, heads=2, layers=1, context=settings.top)
        self.model, self.examples, self.top = self.config.build(), settings.top, settings.top

    def batches(self, epoch: int) -> list[np.ndarray]:
        return [np.arange(self.top)]

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        return np.array_split(indices, count)

    def collate(self, indices: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(indices)[:, None]

    def weight(self, indices: np.ndarray) -> int:
        return len(indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        return len(indices)

    def loss(self, model: Any, batch: Any) -> Loss:
        import torch

        return smoothed_loss(model(batch), torch.eye(self.top + 1), None, batch + 1, smoothing=0.0, pad=-1)

    def validate(self, model: Any) -> dict[str, float]:
        return {"loss": float(self.loss(model, self.collate(np.arange(self.top))).nll)}

    def show(self, model: Any, folder: Path) -> None:
        folder.mkdir(parents=True)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        store.write(folder, model, self.config, facts | {"name": "count"})


class Count(BaseTask):
    name, settings, options = "count", CountSettings, CountOptions

    def prepare(self, settings: CountSettings, folder: Path) -> PreparedCount:
        return PreparedCount(settings)

    def evaluate(self, folder: Path, options: CountOptions) -> dict[str, Any]:
        return super().evaluate(folder, options) | {"above": options.above}

    def next_command(self, run: str) -> str:
        return f"count {run} 3"


def count_from(
    model: Annotated[str, typer.Argument(help="A run.")],
    number: Annotated[int, typer.Argument(help="Where to begin.")],
    twice: Annotated[bool, typer.Option("--twice", help="Say it twice.")] = False,
) -> None:
    """Say what follows NUMBER, as MODEL has it."""
    typer.echo(" ".join([f"{Path(model).name}: {number + 1}"] * (1 + twice)))


@pytest.fixture
def added(monkeypatch):
    verb = registry.TaskCommand("count", "Say what follows a number.", "tests.cli.test_commands:count_from")
    entry = registry.TaskEntry("count upwards", "tests.cli.test_commands:Count", (verb,))
    monkeypatch.setitem(registry.TASKS, "count", entry)


def test_a_new_task_is_listed_trained_evaluated_and_has_its_command(added, monkeypatch, capsys, tmp_path):
    folder = tmp_path / "run"
    code, printed, _ = run(monkeypatch, capsys, "tasks")
    assert (code, "count      count upwards\n" in printed) == (0, True)
    code, printed, _ = run(monkeypatch, capsys, "train", "count", "--top", "7", "--out", str(folder), "--quiet")
    assert (code, printed) == (0, "")
    code, printed, _ = run(monkeypatch, capsys, "train", "count", "--top", "7", "--out", str(tmp_path / "other"))
    assert printed.endswith(f"after 3 steps. Next: regard count {tmp_path / 'other'} 3\n")
    code, printed, _ = run(monkeypatch, capsys, "evaluate", str(folder))
    assert (code, re.fullmatch(r"count: loss [\d.]+\n", printed) is not None) == (0, True)
    code, printed, _ = run(monkeypatch, capsys, "evaluate", str(folder), "--above", "4", "--json")
    assert json.loads(printed)["above"] == 4
    assert run(monkeypatch, capsys, "count", str(folder), "3", "--twice")[:2] == (0, "run: 4 run: 4\n")


def test_a_new_task_is_in_every_help(added, monkeypatch, capsys, tmp_path):
    run(monkeypatch, capsys, "train", "count", "--out", str(tmp_path / "run"), "--quiet")
    assert re.search(r"\n  count +Say what follows a number\.\n", run(monkeypatch, capsys, "--help")[1])
    printed = " ".join(run(monkeypatch, capsys, "train", "count", "--help")[1].split())
    assert "Settings of count: --seed" in printed
    assert "--top largest number [9]" in printed
    printed = " ".join(run(monkeypatch, capsys, "evaluate", str(tmp_path / "run"), "--help")[1].split())
    assert "Options for count: --above smallest number to ask for [0]" in printed
    assert "Options for" not in run(monkeypatch, capsys, "evaluate", "--help")[1]
    printed = run(monkeypatch, capsys, "count", "-h")[1]
    assert "Say what follows NUMBER, as MODEL has it." in printed
    assert "--twice" in printed


def test_options_of_another_task_are_refused(added, monkeypatch, capsys, tmp_path):
    run(monkeypatch, capsys, "train", "count", "--out", str(tmp_path / "run"), "--quiet")
    code, printed, said = run(monkeypatch, capsys, "evaluate", str(tmp_path / "run"), "--beams", "3")
    assert (code, printed) == (2, "")
    assert said == "regard: there is no setting 'beams'; there are above\n"


def test_help_lists_the_commands_of_tasks_among_its_own(monkeypatch, capsys):
    printed = run(monkeypatch, capsys, "--help")[1]
    names = re.findall(r"^  ([a-z-]+)  ", printed.split("Commands:")[1], re.MULTILINE)
    assert names[names.index("train") + 1] == "translate"
    assert {"see", "serve", "evaluate", "tasks"} <= set(names)
    assert "Translate texts, or each line of a file." in printed


def test_no_evaluation_learns_a_vocabulary(monkeypatch, capsys):
    folder = str(run_of())

    def refuse(*given, **more):
        raise AssertionError("a vocabulary was learnt")

    monkeypatch.setattr(vocabulary.Vocabulary, "train", refuse)
    code, printed, _ = run(monkeypatch, capsys, "evaluate", folder, "--count", "2", "--beams", "1", "--json")
    assert (code, json.loads(printed)["sentences"]) == (0, 2)
    found = BaseTask.evaluate(
        Translate(), Path(folder) / "model", EvaluationOptions()
    )  # by its validation, as others are
    assert found["scores"]["bleu"] >= 0


def test_a_model_that_lost_its_vocabulary_gets_no_other(tmp_path):
    folder = copied(tmp_path) / "model"
    (folder / "source.json").unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["source.json"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=r"holds a model without source\.json and target\.json; take a whole copy"):
        BaseTask.evaluate(Translate(), folder, EvaluationOptions())
    assert not (folder / "source.json").exists()
