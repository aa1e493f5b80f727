"""What every task has beside what the engine asks for: an evaluation with its options, a report, a next command."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from regard.models import store
from regard.training.settings import Settings, settings_from
from regard.training.task import PreparedTask


class EvaluationOptions(BaseModel):
    """The options of `regard evaluate` for one task; most have none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BaseTask:
    """A task of the registry: what can be learnt, by which settings, and how the result is judged.

    A task gives `name`, `settings` and `prepare`; the rest has a default.
    """

    name: str
    settings: type[Settings]
    options: type[EvaluationOptions] = EvaluationOptions

    def check_requirements(self, settings: Any) -> None:
        """Refuse, with the line that installs it, where something is missing that a validation will need."""

    def prepare(self, settings: Any, folder: Path) -> PreparedTask:
        """Read, encode, and make the model; what was learnt from the data, such as a vocabulary, lies in `folder`."""
        raise NotImplementedError

    def evaluate(self, folder: Path, options: Any) -> dict[str, Any]:
        """Scores of the model in a folder, by the validation of its training.

        The data are prepared in the folder of the model, so that the vocabulary is the one that lies there.
        """
        settings = settings_from(self.settings, store.describe(folder).get("settings") or {})
        return {"task": self.name, "scores": self.prepare(settings, folder).validate(store.read(folder))}

    def report(self, result: dict[str, Any]) -> str:
        """The result of `evaluate`, as a terminal shows it."""
        return f"{result['task']}: " + "  ".join(f"{name} {value:.4g}" for name, value in result["scores"].items())

    def next_command(self, run: str) -> str:
        """The command of `regard` to try after training, with the folder of the run as a shell takes it."""
        return f"evaluate {run}"
