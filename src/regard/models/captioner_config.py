"""The hyper-parameters of a model that writes what a picture shows."""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from regard.models.config import ModelConfig

if TYPE_CHECKING:
    from regard.models.captioner import Captioner

ATTENTIONS = ("soft", "hard", "none")


@dataclass(frozen=True)
class CaptionerConfig(ModelConfig):
    """The sizes of a `Captioner`, and how it looks at a picture, as they stand in a manifest.

    >>> config = CaptionerConfig(48, 48, vocab_size=31)
    >>> config.stride, config.build().head
    (4, Linear(in_features=64, out_features=31, bias=True))
    """

    image_height: int  # pixels of the pictures that it was made for; others are read too
    image_width: int
    vocab_size: int  # how many tokens there are to write
    channels: int = 3  # of a pixel: 3 colours, or 1 for shades of grey
    features: tuple[int, ...] = (24, 48, 64, 96)  # channels of each convolution; the last are those of a location
    strides: tuple[int, ...] = (2, 2, 1, 1)  # of each convolution; a location is as many pixels as their product
    width: int = 128  # channels of the state
    embedding: int = 64  # channels of a token
    hidden: int = 64  # channels in which state and location are compared
    cell: str = "lstm"  # "lstm" or "gru"
    attention: str = "soft"  # "soft", "hard", or "none" for the mean of all locations
    dropout: float = 0.0  # share dropped in training
    context_dropout: float = 0.0  # share of steps in training whose context the cell is not given
    pad: int = 0  # the id that fills up short texts

    @property
    def stride(self) -> int:
        """Pixels of a location in either direction."""
        return prod(self.strides)

    def build(self) -> "Captioner":
        """A model of these sizes with random weights."""
        from regard.models.captioner import Captioner

        return Captioner(self)
