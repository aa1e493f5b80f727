"""The hyper-parameters of a model: one frozen dataclass per kind, the only place where they are listed."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class ModelConfig:
    """A frozen dataclass of plain values, as they stand in a manifest, that builds a model.

    Models take their config as the one argument of their constructor, `store` writes and reads its fields by name,
    and settings of training are filled into it; what a field means is said beside it, once.
    """

    def build(self) -> nn.Module:
        """A model of these sizes with random weights."""
        raise NotImplementedError
