"""Where a model that looks by glimpses looked: as a map that every view can draw, and as squares on the picture."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.glimpse import Glimpse, crop_glimpses
from regard.tokens import Tokens, patches
from regard.trace.record.trace import Trace
from regard.trace.record.weights import from_weights

LAYER = "glimpses"
OUTSIDE = "[OUTSIDE]"
NOTE = "hard attention: each row is one glimpse, and each pixel weighs what it counts for in what that glimpse saw"


def trace_glimpses(model: Glimpse, locations: Float[Tensor, "t 2"]) -> Trace:
    """A map of one head: rows are glimpses at these places, columns the pixels of the picture, and one for what lies
    outside of it.

    A weight is the share of a pixel in the numbers that the retina gives, of all scales together; each row sums to 1.

    >>> from regard.models import GlimpseConfig
    >>> model = GlimpseConfig(6, 8, channels=1, glimpse_size=4).build()
    >>> row = trace_glimpses(model, torch.tensor([[0.0, 0.0]])).layers[0].weights.dense()[0, 0, 0]
    >>> row.shape, row.max(), (row > 0).sum()
    (torch.Size([49]), tensor(0.0625), tensor(16))
    """
    config = model.config
    height, width = config.image_height, config.image_width
    with torch.enable_grad():
        picture = torch.zeros(len(locations), 1, height, width, requires_grad=True)
        seen = crop_glimpses(picture, locations.float().cpu(), config.glimpse_size, config.glimpse_scales)
        [shares] = torch.autograd.grad(seen.flatten(1).mean(1).sum(), picture)
    inside = shares.flatten(1)
    weights = torch.cat((inside, (1 - inside.sum(1, keepdim=True)).clamp(min=0)), 1)
    cells = patches(height, width)
    keys = Tokens((*cells.shown, OUTSIDE), special=(False,) * (height * width) + (True,), grid=cells.grid)
    queries = Tokens(tuple(f"glimpse {number}" for number in range(1, len(locations) + 1)))
    trace = from_weights({LAYER: weights}, queries, keys=keys, kind="cross")
    trace.model = type(model).__name__
    trace.layers[0].notes.append(NOTE)
    return trace


def find_pixels(model: Glimpse, locations: Float[Tensor, "t 2"]) -> Int[Tensor, "t 2"]:
    """The row and the column of the pixel edge that each glimpse is centred on, as `crop_glimpses` rounds them."""
    sides = locations.new_tensor([model.config.image_height, model.config.image_width])
    return ((locations + 1) / 2 * sides).round().long()


def describe_glimpses(model: Glimpse, locations: Float[Tensor, "t 2"]) -> dict[str, Any]:
    """`ShownGlimpses` of the protocol: how large glimpses are, at how many scales, and where they are, in pixels."""
    config = model.config
    places = [(row, column) for row, column in find_pixels(model, locations).tolist()]
    return {"size": config.glimpse_size, "scales": config.glimpse_scales, "places": places}
