"""Pictures changed a little, so that a model learns what matters; each change follows from seed, epoch and example."""

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.random_bits import draw_bits

DRAWS = 6  # numbers for each picture: down, right, angle, size, mirrored, brightness


class Augmentation(NamedTuple):
    """How far pictures are changed: each by as much as these say at most, in either direction.

    >>> Augmentation(shift=2).changes, Augmentation().changes
    (True, False)
    """

    shift: float = 0.0  # pixels, down and to the right
    rotate: float = 0.0  # degrees
    scale: float = 0.0  # share of the size
    flip: bool = False  # whether half of them are mirrored
    brightness: float = 0.0  # what is added to all pixels

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return any(self)

    def apply(
        self, pictures: Float[Tensor, "b c y x"], examples: Int[np.ndarray, " b"], *, seed: int, epoch: int
    ) -> Float[Tensor, "b c y x"]:
        """The pictures of these examples as one epoch sees them; what comes in from outside repeats the border.

        What happens to an example depends on seed, epoch and its number alone, never on its neighbours, so that a run
        that is resumed sees what it would have seen.
        """
        if not self.changes or not len(pictures):
            return pictures
        draws = draw_shares(examples, seed=seed, epoch=epoch) * 2 - 1  # b 6, from −1 to 1
        down, right, angle, size, mirrored, light = draws.T
        height, width = pictures.shape[-2:]
        turn, zoom = angle * math.radians(self.rotate), 1 + size * self.scale
        flipped = np.where(mirrored < 0, -1.0, 1.0) if self.flip else np.ones(len(draws))
        cos, sin = np.cos(turn) / zoom, np.sin(turn) / zoom
        matrix = np.stack(  # where each pixel comes from, with half a side as the unit in either direction
            (
                np.stack((flipped * cos, flipped * sin * (height / width), 2 * right * self.shift / width), -1),
                np.stack((-sin * (width / height), cos, 2 * down * self.shift / height), -1),
            ),
            1,
        )
        grid = F.affine_grid(torch.from_numpy(matrix).to(pictures.dtype), list(pictures.shape), align_corners=False)
        moved = F.grid_sample(pictures, grid, mode="bilinear", padding_mode="border", align_corners=False)
        if not self.brightness:
            return moved
        return moved + torch.from_numpy(light * self.brightness).to(moved.dtype)[:, None, None, None]


def draw_shares(examples: Int[np.ndarray, " b"], *, seed: int, epoch: int) -> Float[np.ndarray, "b d"]:
    """Random numbers from 0 to 1 for each example in an epoch.

    >>> some = draw_shares(np.arange(4), seed=1, epoch=2)
    >>> some.shape, bool((draw_shares(np.array([3]), seed=1, epoch=2) == some[3]).all())
    ((4, 6), True)
    """
    bits = draw_bits(seed, epoch, np.asarray(examples)[:, None], np.arange(DRAWS))
    return (bits >> np.uint64(11)) * 2.0**-53
