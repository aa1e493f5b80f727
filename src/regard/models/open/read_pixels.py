"""How a model of pictures wants its pixels: size, channels, and what is subtracted and divided by, from its folder."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.models.open.folder_files import read_optional
from regard.models.store import MANIFEST

PREPROCESSOR = "preprocessor_config.json"  # beside a model of `transformers`


class PixelScaling(NamedTuple):
    """What is subtracted from each channel of a pixel in 0 … 1, and what the rest is divided by.

    >>> scaling = PixelScaling((0.5,), (0.25,))
    >>> scaling.scale(np.array([[[[0, 255]]]], dtype=np.uint8)).tolist()
    [[[[-2.0, 2.0]]]]
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def scale(self, pixels: UInt8[np.ndarray, "b c y x"]) -> Float[Tensor, "b c y x"]:
        """Bytes as numbers, in float32."""
        mean, deviation = (torch.tensor(one).view(1, -1, 1, 1) for one in self)
        return (torch.tensor(pixels).float() / 255 - mean) / deviation  # a copy: what came may not be writable


def read_pixel_scaling(folder: Path, channels: int) -> PixelScaling:
    """What the manifest of a model of ours says, or the preprocessor of `transformers`; 0.5 and 0.5 where nothing does.

    >>> read_pixel_scaling(Path("nowhere"), 1)
    PixelScaling(mean=(0.5,), deviation=(0.5,))
    """
    ours, theirs = read_optional(folder / MANIFEST), read_optional(folder / PREPROCESSOR)
    said = ours.get("pixels") if isinstance(ours.get("pixels"), dict) else theirs
    mean, deviation = (as_numbers((said or {}).get(name), channels) for name in ("image_mean", "image_std"))
    if mean is not None and deviation is not None and min(deviation) > 0:
        return PixelScaling(mean, deviation)
    return PixelScaling((0.5,) * channels, (0.5,) * channels)


def is_cropped(folder: Path) -> bool:
    """Whether pictures are cut around the middle to the size that the model wants; else they are stretched to it.

    >>> is_cropped(Path("nowhere"))
    True
    """
    ours, theirs = read_optional(folder / MANIFEST).get("pixels"), read_optional(folder / PREPROCESSOR)
    said = ours.get("crop") if isinstance(ours, dict) else theirs.get("do_center_crop", not theirs)
    return said is not False


def as_numbers(given: Any, count: int) -> tuple[float, ...] | None:
    """A list of so many finite numbers; None of anything else."""
    if not isinstance(given, list) or len(given) != count:
        return None
    right = all(isinstance(one, int | float) and abs(one) < float("inf") for one in given)
    return tuple(map(float, given)) if right else None
