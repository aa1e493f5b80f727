"""A kind of model that the package does not have: its config, its class and its one entry, for tests that add it."""

from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from regard import MultiHead
from regard.models import store
from regard.models.config import ModelConfig
from regard.models.kinds import Kind, temporary_kind

WORDS = ["the", "cat", "sat", "on", "mat", "."]


@dataclass(frozen=True)
class ToyConfig(ModelConfig):
    """One layer of attention that every position sees."""

    vocab_size: int
    width: int
    heads: int
    scale: float = 1.0

    def build(self):
        return Toy(self)


class Toy(nn.Module):
    """Reads a text and says one number per token."""

    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.width)
        self.attention = MultiHead(config.width, config.heads)
        self.head = nn.Linear(config.width, 1)
        self.scale = config.scale

    def forward(self, ids):
        return self.head(self.attention(self.embed(ids) * self.scale))[..., 0]


TOY = Kind(
    name="toy",
    config=f"{__name__}:ToyConfig",
    model=f"{__name__}:Toy",
    reads="text",
    writes=None,
    tasks=("read",),
    opener="regard.app.runners.readers:open_reader",
)


@contextmanager
def toy_in(folder, kind=TOY):
    """The config and the model, written to this folder; their kind is known as long as the block runs."""
    with temporary_kind(kind):
        config = ToyConfig(vocab_size=len(WORDS), width=8, heads=2, scale=0.5)
        torch.manual_seed(3)
        model = config.build().eval()
        store.write(folder, model, config, {"name": "toy", "about": "reads and says a number", "vocabulary": WORDS})
        yield config, model
