"""The hyper-parameters of a recurrent model of visual attention."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.models.config import ModelConfig

if TYPE_CHECKING:
    from regard.models.glimpse import Glimpse


@dataclass(frozen=True)
class GlimpseConfig(ModelConfig):
    """The sizes of a `Glimpse`, and how often and how wide it looks, as they stand in a manifest.

    >>> GlimpseConfig(28, 28, channels=1, labels=10).build().classifier
    Linear(in_features=256, out_features=10, bias=True)
    """

    image_height: int  # pixels of the pictures that it was made for; others can be read too
    image_width: int
    channels: int = 3  # of a pixel: 3 colours, or 1 for shades of grey
    glimpses: int = 6  # how often it looks at a picture
    glimpse_size: int = 8  # pixels of a glimpse in either direction, at every scale
    glimpse_scales: int = 1  # scales of a glimpse, each of which sees twice as far as the one before it
    width: int = 256  # channels of the state
    labels: int = 2  # how many classes there are
    location_deviation: float = 0.1  # how far from where it means to look it looks in training, half a picture is 1

    def build(self) -> "Glimpse":
        """A model of these sizes with random weights."""
        from regard.models.glimpse import Glimpse

        return Glimpse(self)
