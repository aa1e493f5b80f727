"""Hard attention: a recurrent network that looks at a few small parts of a picture, one after the other (RAM)."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.models.glimpse_config import GlimpseConfig
from regard.models.parts import must_be_sizes
from regard.models.pictures import must_be_pictures


class GlimpsePath(NamedTuple):
    """What came of looking at pictures: their logits, where each glimpse was, and what training asks of the way there.

    Locations are (down, right), −1 to 1 from edge to edge. `log_probs` are those of the locations that were drawn, 0
    for the first, which nobody chose; `baselines` are the rewards that were expected before each of the others.
    """

    logits: Float[Tensor, "b n"]
    locations: Float[Tensor, "b t 2"]
    log_probs: Float[Tensor, "b t"]
    baselines: Float[Tensor, "b t"]


def crop_glimpses(
    pictures: Float[Tensor, "b c y x"], locations: Float[Tensor, "b 2"], size: int, scales: int
) -> Float[Tensor, "b s c size size"]:
    """The retina: squares around each location, of `size` pixels and of 2, 4, … times as many, averaged to `size`.

    All of them are parts of the largest, which is cut out of the whole batch at once (Mnih et al. 2014, figure 1A).
    What lies outside of the picture is 0. A location is that of the pixel nearest to it.

    >>> picture = torch.arange(16.0).view(1, 1, 4, 4)
    >>> crop_glimpses(picture, torch.tensor([[-1.0, -1.0]]), 2, 1)[0, 0, 0].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    >>> crop_glimpses(picture, torch.tensor([[0.0, 0.0]]), 2, 2)[0, :, 0].tolist()
    [[[5.0, 6.0], [9.0, 10.0]], [[2.5, 4.5], [10.5, 12.5]]]
    """
    height, width = pictures.shape[-2:]
    far = size * 2 ** (scales - 1)
    sides = locations.new_tensor([height, width])
    first = ((locations + 1) / 2 * sides).round().long() - far // 2 + far  # b 2, in the picture with a rim of far
    steps = torch.arange(far, device=pictures.device)
    rows, columns = (first[:, at, None] + steps for at in (0, 1))  # b far
    padded = F.pad(pictures, (far, far, far, far))
    batch = torch.arange(len(pictures), device=pictures.device)[:, None, None]
    whole = padded[batch, :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)  # b c far far
    made = []
    for scale in range(scales):
        side = size * 2**scale
        start = (far - side) // 2
        made.append(F.avg_pool2d(whole[:, :, start : start + side, start : start + side], 2**scale))
    return torch.stack(made, 1)


class Glimpse(nn.Module):
    r"""Pictures → logits of their classes, (b, labels), from a few glimpses (Mnih et al. 2014, arXiv 1406.6247).

    At each step the retina ρ sees squares of several scales around a location l, and the networks of the paper follow:

    - glimpse: $g = \mathrm{relu}(W_{gg}\,\mathrm{relu}(W_g \rho) + W_{gl}\,\mathrm{relu}(W_l l))$
    - core: $h_t = \mathrm{relu}(W_h h_{t-1} + W_x g_t)$
    - location: $l_{t+1} \sim N(\tanh(W_m h_t), \sigma)$, cut to the picture; baseline: $b_t = W_b h_t$
    - action: $\mathrm{softmax}(W_a h_T)$

    No gradient flows through a location, nor from the networks of location and baseline into the state. Training
    draws locations, the first anywhere, and learns them by reward (`regard.tasks.glimpse_loss`); otherwise the first
    glimpse is at the middle, the others where the network means to look: a function of the picture.

    >>> model = GlimpseConfig(28, 28, channels=1, glimpses=3, glimpse_scales=2, width=16, labels=10).build().eval()
    >>> model(torch.ones(5, 1, 28, 28)).shape, model(torch.ones(5, 1, 28, 28), paths=True).locations.shape
    (torch.Size([5, 10]), torch.Size([5, 3, 2]))
    """

    def __init__(self, config: GlimpseConfig) -> None:
        super().__init__()
        names = (
            "image_height",
            "image_width",
            "channels",
            "glimpses",
            "glimpse_size",
            "glimpse_scales",
            "width",
            "labels",
        )
        must_be_sizes(**{name: getattr(config, name) for name in names})
        if config.glimpse_size * 2 ** (config.glimpse_scales - 1) > 4 * max(config.image_height, config.image_width):
            raise ShapeError(
                f"{config.glimpse_scales} scales of {config.glimpse_size} pixels see {config.glimpse_size} · "
                f"2^{config.glimpse_scales - 1} pixels, far more than a picture of {config.image_height} × "
                f"{config.image_width}; give fewer scales"
            )
        if not 0 < config.location_deviation < math.inf:
            raise ShapeError(f"location_deviation is {config.location_deviation}; give a number above 0")
        self.config = config
        width, half = config.width, max(1, config.width // 2)
        seen = config.glimpse_scales * config.channels * config.glimpse_size**2
        self.see, self.place = nn.Linear(seen, half), nn.Linear(2, half)
        self.join_seen, self.join_place = nn.Linear(half, width), nn.Linear(half, width)
        self.from_state, self.from_glimpse = nn.Linear(width, width), nn.Linear(width, width)
        self.locate, self.expect = nn.Linear(width, 2), nn.Linear(width, 1)
        self.classifier = nn.Linear(width, config.labels)

    def forward(self, pictures: Tensor, *, paths: bool = False) -> Tensor | GlimpsePath:
        """The logits of `pictures` (b, channels, height, width); with `paths` also where it looked."""
        must_be_pictures(pictures, self.config.channels)
        pictures = pictures.to(self.see.weight.dtype)
        b = len(pictures)
        state = pictures.new_zeros(b, self.config.width)
        place = pictures.new_zeros(b, 2)
        if self.training:
            place = place.uniform_(-1, 1)
        locations, log_probs = [place], [place.new_zeros(b)]
        baselines = [place.new_zeros(b)]
        for step in range(self.config.glimpses):
            if step:
                place, log_prob = self._choose(state)
                locations.append(place)
                log_probs.append(log_prob)
                baselines.append(self.expect(state.detach())[:, 0])
            state = F.relu(self.from_state(state) + self.from_glimpse(self._look(pictures, place)))
        logits = self.classifier(state)
        if not paths:
            return logits
        return GlimpsePath(logits, *(torch.stack(one, 1) for one in (locations, log_probs, baselines)))

    def _look(self, pictures: Float[Tensor, "b c y x"], place: Float[Tensor, "b 2"]) -> Float[Tensor, "b m"]:
        """What a glimpse at these places gives."""
        seen = crop_glimpses(pictures, place, self.config.glimpse_size, self.config.glimpse_scales)
        return F.relu(self.join_seen(F.relu(self.see(seen.flatten(1)))) + self.join_place(F.relu(self.place(place))))

    def _choose(self, state: Float[Tensor, "b m"]) -> tuple[Float[Tensor, "b 2"], Float[Tensor, " b"]]:
        """Where to look next, without a gradient, and the logarithm of its probability, with one."""
        mean, deviation = torch.tanh(self.locate(state.detach())), self.config.location_deviation
        if not self.training:
            return mean.detach(), mean.new_zeros(len(mean))
        drawn = (mean + deviation * torch.randn_like(mean)).detach()
        log_prob = -((drawn - mean) / deviation).square() / 2 - math.log(deviation * math.sqrt(2 * math.pi))
        return drawn.clamp(-1, 1), log_prob.sum(-1)

    @property
    def gives_states(self) -> bool:
        """Whether what comes out are hidden states: here logits do."""
        return False

    def extra_repr(self) -> str:
        one = self.config
        return f"glimpses={one.glimpses}, glimpse_size={one.glimpse_size}, glimpse_scales={one.glimpse_scales}"
