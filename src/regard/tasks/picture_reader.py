"""What models of pictures have in common as they are opened: they read a file as they were trained to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.data.picture_file import read_picture, resize_picture
from regard.models.open.read_pixels import PixelScaling


@dataclass(frozen=True)
class PictureReader:
    """A model of pictures by its name, with what it is shown of a file."""

    name: str
    model: Any
    scaling: PixelScaling
    crop: bool  # whether pictures are cut around the middle; else they are stretched
    facts: dict[str, Any] = field(default_factory=dict)  # its manifest

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the pictures that it is shown."""
        return self.model.config.image_height, self.model.config.image_width

    def fit(self, source: Path | bytes, name: str = "") -> UInt8[np.ndarray, "y x c"]:
        """The part of one picture that the model is shown, in its size."""
        pixels = read_picture(source, channels=self.model.config.channels, name=name)
        return resize_picture(pixels, *self.size, crop=self.crop)

    def scale(self, pixels: UInt8[np.ndarray, "y x c"]) -> Float[Tensor, "1 c y x"]:
        """One picture in its size, as the model wants it."""
        return self.scaling.scale(np.ascontiguousarray(pixels.transpose(2, 0, 1))[None])

    def read(self, source: Path | bytes, name: str = "") -> Float[Tensor, "1 c y x"]:
        """One picture as the model wants it."""
        return self.scale(self.fit(source, name))
