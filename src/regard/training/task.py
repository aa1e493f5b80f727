"""What the engine asks of a task: what to compute, how well it went, and what to show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from torch import nn

from regard.training.loss import Loss
from regard.training.settings import Settings

Indices = np.ndarray


class Better(NamedTuple):
    """Which score decides which weights are best, and whether more of it is better."""

    score: str
    more: bool = True


@runtime_checkable
class PreparedTask(Protocol):
    """A task made ready by its settings: everything here is a function of them and of the files they name."""

    model: nn.Module
    better: Better
    examples: int  # how many there are to learn from
    left_out: int  # how many lines or examples are not: empty ones and too long ones, unless `why_left_out` says else

    def batches(self, epoch: int) -> Sequence[Indices]:
        """The updates of one epoch, each as the numbers of its examples; the same whenever it is asked."""
        ...

    def parts(self, indices: Indices, count: int) -> list[Indices]:
        """One update in `count` parts of about equal work; a part may be empty."""
        ...

    def collate(self, indices: Indices) -> Any:
        """These examples as tensors."""
        ...

    def weight(self, indices: Indices) -> int:
        """What these examples count in the loss: its sum is divided by that."""
        ...

    def count_tokens(self, indices: Indices) -> int:
        """How many tokens of these examples are read, or written where the task writes; padding is none."""
        ...

    def loss(self, model: nn.Module, batch: Any) -> Loss:
        """Sums over the tokens that count."""
        ...

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Scores of the model as it is, in eval mode, on examples that it does not learn from."""
        ...

    def show(self, model: nn.Module, folder: Path) -> None:
        """A few fixed examples, with what the model attends to, written into a folder."""
        ...

    def export(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        """A folder that opens by itself: weights, vocabularies, and a manifest with these facts."""
        ...


@runtime_checkable
class Task(Protocol):
    """Something that can be learnt by name."""

    name: str
    settings: type[Settings]

    def check_requirements(self, settings: Any) -> None:
        """Refuse, with the line that installs it, where something is missing that a validation will need."""
        ...

    def prepare(self, settings: Any, folder: Path) -> PreparedTask:
        """Read, encode, and make the model; what was learnt from the data, such as a vocabulary, lies in `folder`."""
        ...
