"""Show, attend and tell: a recurrent network writes what a picture shows, and looks at a place of it for each word."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.observe import muted
from regard.attention.score import Additive
from regard.errors import ShapeError
from regard.layers.dropout import Dropout
from regard.models.captioner_config import ATTENTIONS, CaptionerConfig
from regard.models.decoder_state import DecoderState
from regard.models.padded import must_be_ids
from regard.models.parts import must_be_sizes
from regard.models.picture_grid import PictureGrid
from regard.models.pictures import must_be_pictures
from regard.models.recurrent import CELLS, RecurrentCells, State, make_recurrent
from regard.models.recurrent_decoder import PreparedAdditive, stack_layers, unstack_layers


class SeenPicture(NamedTuple):
    """All that the decoder needs of pictures."""

    memory: Float[Tensor, "b s d"]  # what was seen at each location
    keys: Float[Tensor, "b 1 s f"] | None  # the same as the score wants it; None without attention
    mean: Float[Tensor, "b d"]  # of all locations
    state: State  # with which the decoder begins


class Look(NamedTuple):
    """What looking at pictures once gave, and what training asks of the way there.

    `log_prob` is that of the location that was drawn, 0 where none was; `entropy` that of the distribution.
    """

    context: Float[Tensor, "b d"]
    weights: Float[Tensor, "b s"] | None = None
    log_prob: Float[Tensor, " b"] | None = None
    entropy: Float[Tensor, " b"] | None = None


class WrittenSteps(NamedTuple):
    """The steps of writing captions: before the head, and where each looked; None where there is no such thing."""

    hidden: Float[Tensor, "b t e"]
    weights: Float[Tensor, "b t s"] | None
    log_probs: Float[Tensor, "b t"] | None
    entropies: Float[Tensor, "b t"] | None


class LocationAttention(nn.Module):
    r"""One head of additive attention of a state on the locations of a picture (Xu et al. 2015, eqs. 4-6).

    Soft: the mix. Hard: what is at one location, drawn in training, the likeliest otherwise, so that a map has a
    single 1. For half of the pictures of a training batch it is the mix after all (ibid., §4.1).
    """

    def __init__(self, query: int, key: int, hidden: int, *, hard: bool) -> None:
        super().__init__()
        self.score, self.hard = Additive(query=query, key=key, hidden=hidden), hard

    def prepare(self, memory: Float[Tensor, "b s d"]) -> Float[Tensor, "b 1 s f"]:
        """The keys, as far as they do not depend on who asks."""
        return self.score.key_to_hidden(memory[:, None])

    def forward(
        self, state: Float[Tensor, "b w"], memory: Float[Tensor, "b s d"], keys: Float[Tensor, "b 1 s f"], details: bool
    ) -> Look:
        given: dict[str, Any] = {
            "q": state[:, None, None],
            "k": keys,
            "v": memory[:, None],
            "score": PreparedAdditive(self.score),
        }
        if not self.hard:
            soft = attend(**given)
            return Look(soft.mix[:, 0, 0], soft.weights.dense()[:, 0, 0] if details else None)
        with muted():
            weights = attend(**given).weights.dense()[:, 0, 0]  # b s
        if not self.training:
            drawn = weights.argmax(-1)
            mixed = torch.zeros_like(drawn, dtype=torch.bool)
        else:
            drawn = torch.multinomial(weights.detach(), 1)[:, 0]
            mixed = torch.rand(len(drawn), device=drawn.device) < 0.5
        seen = F.one_hot(drawn, weights.shape[-1]).bool() | mixed[:, None]
        context = attend(**given, mask=seen[:, None, None]).mix[:, 0, 0]
        if not details:
            return Look(context)
        logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
        log_prob = logs.gather(1, drawn[:, None])[:, 0].where(~mixed, 0.0)
        return Look(context, weights, log_prob, -(weights * logs).sum(-1))


class CaptionDecoder(nn.Module):
    r"""Ids and what was seen → what stands before the head, and where the next step begins.

    At each step the state before it looks, $\hat z_t = \beta_t\,\mathrm{attend}(h_{t-1}, a, a)$ with
    $\beta_t = \sigma(f_\beta(h_{t-1}))$ enters the cell beside the token, and the head reads
    $E y_{t-1} + L_h h_t + L_z \hat z_t$ (Xu et al. 2015, eqs. 1-3 and 7, and §4.2.1).
    """

    attention: LocationAttention | None

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        width, seen = config.width, config.features[-1]
        self.embedding = config.embedding
        self.rnn = make_recurrent(config.cell, config.embedding + seen, width, 1, 0.0)
        self.attention = None
        if config.attention != "none":
            self.attention = LocationAttention(width, seen, config.hidden, hard=config.attention == "hard")
        self.gate = nn.Linear(width, 1)
        self.to_out = nn.Linear(width + seen, config.embedding)
        self.dropout, self.context_dropout = Dropout(config.dropout), config.context_dropout

    def forward(
        self,
        ids: Int[Tensor, "b t"],
        table: Float[Tensor, "n e"],
        seen: SeenPicture,
        state: State,
        *,
        details: bool = False,
    ) -> tuple[WrittenSteps, State]:
        """`state` is where it stands; with `details` also weights, log-probabilities and entropies."""
        x = self.dropout(F.embedding(ids, table))  # b t e
        cells, layers = RecurrentCells(self.rnn, self.embedding), unstack_layers(state)
        said, looks = [], []
        for gates in cells.project(x).unbind(1):
            before = layers[-1][0]
            look = self.look(before, seen, details)
            context = torch.sigmoid(self.gate(before)) * look.context
            layers = cells.step(gates, self.forget(context), layers)
            said.append(torch.cat((layers[-1][0], context), -1))
            looks.append(look)
        hidden = self.dropout(x + self.to_out(torch.stack(said, 1)))
        found = [stack_steps([look[at] for look in looks]) for at in (1, 2, 3)]
        return WrittenSteps(hidden, *found), stack_layers(layers)

    def forget(self, context: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """What the cell is given of a context: in training nothing at some steps, which the head sees all the same."""
        if not self.training or not self.context_dropout:
            return context
        return context * (torch.rand(len(context), 1, device=context.device) >= self.context_dropout)

    def look(self, state: Float[Tensor, "b w"], seen: SeenPicture, details: bool) -> Look:
        if self.attention is None or seen.keys is None:
            return Look(seen.mean)
        return self.attention(state, seen.memory, seen.keys, details)


def stack_steps(steps: list[Tensor | None]) -> Tensor | None:
    """What steps gave, side by side; None where they gave nothing."""
    there = [one for one in steps if one is not None]
    return torch.stack(there, 1) if there else None


class Captioner(nn.Module):
    r"""Pictures and the beginnings of captions → how likely each next token is (Xu et al. 2015, arXiv 1502.03044).

    Convolutions make a grid of locations of the picture (`PictureGrid`, trained with the rest), and an LSTM or GRU
    writes, looking at them before each word. `attention` says how:

    - "soft": the mean of all locations, weighted by additive attention
    - "hard": a single one, drawn in training and learned by reward (`regard.training.caption_loss`)
    - "none": their plain mean, the same at every step: what attention has to beat

    A context is scaled by a learned gate β between 0 and 1. With `context_dropout` the cell is not given it at some
    steps of training, so that a word cannot count on what was seen before it, and looks for itself. The first state is
    made of the mean of all locations. All sizes stand in its `config`, a `CaptionerConfig`; the sides of a picture must
    be multiples of its `stride`.

    >>> model = CaptionerConfig(12, 20, vocab_size=13, features=(8, 12), strides=(2, 2), width=16).build().eval()
    >>> pictures, captions = torch.ones(5, 3, 12, 20), torch.tensor([[1, 4, 9, 8]]).expand(5, -1)
    >>> model(pictures, captions).shape, model.write(pictures, captions).weights.shape
    (torch.Size([5, 4, 13]), torch.Size([5, 4, 15]))
    >>> steps = model.begin(pictures)
    >>> steps(captions[:, :1]).shape, steps.attention().shape
    (torch.Size([5, 13]), torch.Size([5, 15]))
    """

    baseline: Tensor

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        must_be_captioner(config)
        self.config = config
        seen, width = config.features[-1], config.width
        self.encoder = PictureGrid(
            config.channels, config.features, config.strides,
            rows=config.image_height // config.stride, columns=config.image_width // config.stride,
        )  # fmt: skip
        self.embed = nn.Embedding(config.vocab_size, config.embedding)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.bridges = nn.ModuleList(nn.Linear(seen, width) for _ in range(2 if config.cell == "lstm" else 1))
        self.decoder = CaptionDecoder(config)
        self.head = nn.Linear(config.embedding, config.vocab_size)
        self.register_buffer("baseline", torch.zeros(()))  # the reward that training has come to expect

    def forward(self, pictures: Tensor, captions: Tensor) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `captions` (b, t), given `pictures` (b, channels, height, width)."""
        return self.head(self.write(pictures, captions, details=False).hidden)

    def write(self, pictures: Tensor, captions: Tensor, *, details: bool = True) -> WrittenSteps:
        """The same before the head, and with `details` where each step looked."""
        must_be_ids("captions", captions, self.config.vocab_size)
        if len(pictures) != len(captions):
            raise ShapeError(f"{len(pictures)} pictures and {len(captions)} captions came; give one for each")
        seen = self.see(pictures)
        return self.decoder(captions, self.embed.weight, seen, seen.state, details=details)[0]

    def begin(self, pictures: Tensor) -> DecoderState:
        """The pictures seen, and nothing written yet: feed it the token that begins a caption."""
        from regard.models.captioner_state import CaptionerState

        return CaptionerState(self, pictures, self.see(pictures))

    def see(self, pictures: Tensor) -> SeenPicture:
        """The locations of pictures, and the state that writing begins with."""
        must_be_pictures(pictures, self.config.channels, self.config.stride)
        memory = self.encoder(pictures.to(self.embed.weight.dtype))
        mean, attention = memory.mean(1), self.decoder.attention
        state = tuple(torch.tanh(bridge(mean))[None] for bridge in self.bridges)
        return SeenPicture(memory, None if attention is None else attention.prepare(memory), mean, state)

    @property
    def head_weight(self) -> Float[Tensor, "n m"]:
        return self.head.weight

    @property
    def head_bias(self) -> Float[Tensor, " n"]:
        return self.head.bias

    def extra_repr(self) -> str:
        one = self.config
        return f"{one.image_height} × {one.image_width}, {one.vocab_size}, attention={one.attention!r}"


def must_be_captioner(config: CaptionerConfig) -> None:
    """Refuse sizes and choices that no `Captioner` can have."""
    names = ("image_height", "image_width", "vocab_size", "channels", "width", "embedding", "hidden")
    must_be_sizes(**{name: getattr(config, name) for name in names})
    if config.attention not in ATTENTIONS:
        raise ValueError(f"attention is {config.attention!r}; choose one of {', '.join(map(repr, ATTENTIONS))}")
    if config.cell not in CELLS:
        raise ValueError(f"cell is {config.cell!r}; choose one of {', '.join(map(repr, CELLS))}")
    if not config.features or len(config.features) != len(config.strides) or min(config.features + config.strides) < 1:
        raise ShapeError(
            f"features are {config.features} and strides {config.strides}; give a whole number, 1 or more, for each "
            "convolution"
        )
    if config.image_height % config.stride or config.image_width % config.stride:
        raise ShapeError(
            f"pictures of {config.image_height} × {config.image_width} pixels do not split into locations of "
            f"{config.stride}; give sides that are multiples of it"
        )
