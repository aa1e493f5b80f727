"""A task small enough to train hundreds of times: learn a random function of six numbers, with dropout."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard.files import put
from regard.training.loss import Loss
from regard.training.settings import Settings
from regard.training.task import Better


class ToySettings(Settings):
    steps: int = 23
    warmup_steps: int = 3
    eval_every: int = 5
    save_every: int = 4
    log_every: int = 3
    batch_tokens: int = 8
    dropout: float = Field(0.2, description="share dropped")
    poison: int = Field(-1, description="an example that is no number")
    pause: float = Field(0.0, description="seconds that a step takes at least")


class ToyWork:
    better = Better("loss", more=False)
    examples, left_out = 53, 0

    def __init__(self, settings: ToySettings, folder: Path) -> None:
        self.given = settings
        rng = np.random.default_rng(5)
        self.x = torch.from_numpy(rng.normal(size=(53, 6)).astype(np.float32))
        self.y = torch.sin(self.x.sum(1, keepdim=True))
        if settings.poison >= 0:
            self.x[settings.poison] = torch.nan
        self.model = nn.Sequential(nn.Linear(6, 11), nn.Dropout(settings.dropout), nn.GELU(), nn.Linear(11, 1))

    def batches(self, epoch: int) -> list[np.ndarray]:
        order = np.random.default_rng((self.given.seed, epoch)).permutation(len(self.x))
        return np.array_split(order, -(-len(order) // self.given.batch_tokens))

    def parts(self, indices: np.ndarray, count: int) -> list[np.ndarray]:
        return np.array_split(indices, count)

    def collate(self, indices: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.from_numpy(indices)
        return self.x[chosen], self.y[chosen]

    def weight(self, indices: np.ndarray) -> int:
        return len(indices)

    def count_tokens(self, indices: np.ndarray) -> int:
        return len(indices)

    def loss(self, model: nn.Module, batch: Any) -> Loss:
        import time

        time.sleep(self.given.pause)
        x, y = batch
        total = (model(x) - y).square().sum()
        return Loss(total, len(x), total.detach())

    def validate(self, model: nn.Module) -> dict[str, float]:
        torch.rand(3)  # a validation may use random numbers without changing the run
        return {"loss": float((model(self.x.nan_to_num()) - self.y).square().mean())}

    def show(self, model: nn.Module, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        put(folder / "examples.json", json.dumps(model(self.x[:2].nan_to_num()).tolist()).encode())

    def export(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        put(folder / "model.json", json.dumps(facts | {"sum": [p.sum().item() for p in model.parameters()]}).encode())


class Toy:
    name, settings = "toy", ToySettings

    def check_requirements(self, settings: ToySettings) -> None:
        pass

    def prepare(self, settings: ToySettings, folder: Path) -> ToyWork:
        return ToyWork(settings, folder)
