"""Copy, reverse and sort: what attention learns in a minute, and what shows at once whether it did."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from torch import nn

from regard.data.examples import PairExamples
from regard.data.special import SPECIAL
from regard.models import store
from regard.models.tokenizer import WordTokenizer
from regard.tasks.base import BaseTask
from regard.tasks.read_and_written import label_ids, show
from regard.tasks.writing import PreparedPairs, WriterSettings, write
from regard.training.settings import with_defaults
from regard.training.task import Better

FIRST = len(SPECIAL)


@with_defaults(steps=2400, batch_tokens=1500, width=64, layers=2, hidden=128, lr=2e-3, warmup_steps=200, shared=True)
class SequenceSettings(WriterSettings):
    """How long the sequences are, and of what."""

    symbols: int = Field(20, ge=2, description="number of distinct symbols")
    shortest: int = Field(3, ge=1, description="minimum sequence length")
    most: int = Field(12, ge=1, description="maximum sequence length")
    examples: int = Field(20_000, ge=10, description="training sequences")
    validation_size: int = Field(500, ge=1, description="validation sequences")


class PreparedSequences(PreparedPairs):
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
            PairExamples([one.tolist() for one in part], [self.target_of(one) for one in part])
            for part in (lists[settings.validation_size :], held)
        ]
        super().__init__(settings, *made)
        self.config = settings.config(FIRST + settings.symbols, FIRST + settings.symbols)
        self.words = [*SPECIAL, *(f"s{i}" for i in range(settings.symbols))]
        self.model = self.config.build()

    def target_of(self, symbols: np.ndarray) -> list[int]:
        target = {"copy": symbols, "reverse": symbols[::-1], "sort": np.sort(symbols)}[self.name]
        return [int(symbol) for symbol in target]

    def validate(self, model: nn.Module) -> dict[str, float]:
        """`exact`: the share of sequences that come out without a fault, decoded freely."""
        held = [self.validation[i] for i in range(len(self.validation))]
        written = write(model, [one.source for one in held])
        right = sum(got.ids == one.target[:-1] for got, one in zip(written, held))
        return {"loss": self.validation_loss(model), "exact": right / len(held)}

    def show(self, model: nn.Module, folder: Path) -> None:
        sources = [self.validation[i].source for i in range(3)]
        words = WordTokenizer(self.words)
        shown = [
            label_ids(words, words, source, written.ids) for source, written in zip(sources, write(model, sources))
        ]
        show(model, shown, folder)

    def export(self, model: Any, folder: Path, facts: dict[str, Any]) -> None:
        store.write(folder, model, self.config, facts | {"name": self.name, "vocabulary": self.words})


class Copy(BaseTask):
    """Repeat a sequence."""

    name, settings = "copy", SequenceSettings

    def prepare(self, settings: SequenceSettings, folder: Path) -> PreparedSequences:
        return PreparedSequences(settings, self.name)


class Reverse(Copy):
    """Write a sequence backwards."""

    name = "reverse"


class Sort(Copy):
    """Write a sequence in order."""

    name = "sort"
