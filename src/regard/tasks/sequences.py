"""Copy, reverse and sort: what attention learns in a minute, and what shows at once whether it did."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from torch import nn

from regard.data.examples import Examples
from regard.data.special import SPECIAL
from regard.models import store
from regard.tasks.read_and_written import ReadAndWritten, show
from regard.tasks.writing import WriterSettings, Writing, write
from regard.training.task import Better

FIRST = len(SPECIAL)


class SequenceSettings(WriterSettings):
    """How long the sequences are, and of what."""

    symbols: int = Field(20, ge=2, description="number of distinct symbols")
    shortest: int = Field(3, ge=1, description="minimum sequence length")
    most: int = Field(12, ge=1, description="maximum sequence length")
    examples: int = Field(20_000, ge=10, description="training sequences")
    validation_size: int = Field(500, ge=1, description="validation sequences")
    steps: int = Field(2400, ge=1, description="training steps")
    batch_tokens: int = Field(1500, ge=1, description="tokens per batch, padding included, summed over all processes")
    width: int = Field(64, ge=1, description="model width (hidden size)")
    layers: int = Field(2, ge=1, description="number of encoder layers, and of decoder layers")
    hidden: int = Field(128, ge=1, description="feed-forward size (transformer)")
    lr: float = Field(2e-3, gt=0, description="peak learning rate")
    warmup_steps: int = Field(200, ge=0, description="steps of linear learning-rate warmup")
    shared: bool = Field(True, description="share one vocabulary and its embeddings between source and target")


class Sequences(Writing):
    """A task on sequences made ready."""

    better = Better("exact")

    def __init__(self, settings: SequenceSettings, name: str) -> None:
        self.name = name
        rng = np.random.default_rng((settings.seed, 7))
        lists = [
            rng.integers(FIRST, FIRST + settings.symbols, rng.integers(settings.shortest, settings.most + 1))
            for _ in range(settings.examples + settings.validation_size)
        ]
        known = {tuple(one) for one in lists[settings.validation_size :]}
        held = [one for one in lists[: settings.validation_size] if tuple(one) not in known]
        made = [
            Examples([one.tolist() for one in part], [self.wanted(one) for one in part])
            for part in (lists[settings.validation_size :], held)
        ]
        super().__init__(settings, *made)
        self.sizes = settings.sizes(FIRST + settings.symbols, FIRST + settings.symbols)
        self.words = [*SPECIAL, *(f"s{i}" for i in range(settings.symbols))]
        self.model = self.sizes.build()

    def wanted(self, symbols: np.ndarray) -> list[int]:
        found = {"copy": symbols, "reverse": symbols[::-1], "sort": np.sort(symbols)}[self.name]
        return [int(x) for x in found]

    def validate(self, model: nn.Module) -> dict[str, float]:
        """`exact`: the share of sequences that come out without a fault, decoded freely."""
        held = [self.validation[i] for i in range(len(self.validation))]
        written = write(model, [one.source for one in held])
        right = sum(got.ids == one.target[:-1] for got, one in zip(written, held))
        return {"loss": self.validation_loss(model), "exact": right / len(held)}

    def show(self, model: nn.Module, folder: Path) -> None:
        sources = [self.validation[i].source for i in range(3)]
        shown = [
            ReadAndWritten(source, [self.words[x] for x in source], written.ids, [self.words[x] for x in written.ids])
            for source, written in zip(sources, write(model, sources))
        ]
        show(model, shown, folder)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        store.write(folder, model, self.sizes, facts | {"name": self.name, "vocabulary": self.words})


class Copy:
    """Say it again."""

    name, about, settings = "copy", "say the sequence again", SequenceSettings

    def check_requirements(self, settings: SequenceSettings) -> None:
        """Its scores need nothing beside the package."""

    def prepare(self, settings: SequenceSettings, folder: Path) -> Sequences:
        return Sequences(settings, self.name)


class Reverse(Copy):
    """Say it backwards."""

    name, about = "reverse", "say the sequence backwards"


class Sort(Copy):
    """Say it in order."""

    name, about = "sort", "say the sequence in order"
