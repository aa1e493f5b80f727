"""Pictures → a grid of locations: a few convolutions, each location with its place."""

from collections.abc import Sequence

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.positions import LearnedGrid

GROUPS = 8  # of channels that are normed together, at most


class PictureGrid(nn.Module):
    """Convolutions of 3 × 3 pixels, each normed and cut at 0, then a learned vector for the place of each location.

    Locations stand row by row. What one sees is little more than what lies there: a map over them is a map of the
    picture.

    >>> import torch
    >>> PictureGrid(3, (8, 12), (2, 2), rows=3, columns=5)(torch.ones(7, 3, 12, 20)).shape
    torch.Size([7, 15, 12])
    """

    def __init__(
        self, channels: int, features: Sequence[int], strides: Sequence[int], *, rows: int, columns: int
    ) -> None:
        super().__init__()
        given = (channels, *features[:-1])
        self.patches = nn.ModuleList(
            nn.Conv2d(one, other, 3, stride, padding=1) for one, other, stride in zip(given, features, strides)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(next(n for n in (GROUPS, 4, 2, 1) if not c % n), c) for c in features)
        self.added = LearnedGrid(rows, columns, features[-1])

    def forward(self, pictures: Float[Tensor, "b _c y x"]) -> Float[Tensor, "b s d"]:
        x = pictures
        for patch, norm in zip(self.patches, self.norms):
            x = F.relu(norm(patch(x)))
        rows, columns = x.shape[-2:]
        return self.added(x.flatten(2).mT, rows, columns)
