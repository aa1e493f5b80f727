"""A Vision Transformer: a picture is cut into patches, each of them a token (Dosovitskiy et al. 2021)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.layers import EncoderBlock
from regard.layers.dropout import Dropout
from regard.layers.norm import make_norm
from regard.models.parts import must_be_positions, must_be_sizes
from regard.models.pictures import draw_weights, must_be_pictures
from regard.models.pooling import must_pool
from regard.models.vit_config import HEADS, POOLINGS, POSITIONS, VitConfig
from regard.positions import LearnedGrid, RotaryGrid, SinusoidGrid
from regard.positions.grid import grid_places


class Vit(nn.Module):
    r"""Pictures → logits of their classes, (b, labels): patches as tokens, an encoder, a pooled vector.

    Patches of `patch_size` pixels are projected, a learned class token stands before them, each gets a position, and
    pre-norm blocks and a last norm follow (Dosovitskiy et al. 2021, eqs. 1-4). `head` is what comes out:

    - "classify": $W p + b$ with $p$ the class token, the mean of the patches, or both side by side (`pooling`)
    - "distilled": the mean of two such, of the class and the distillation token (Touvron et al. 2021a, §3)
    - "none": hidden states of all tokens, (b, t, m)

    `positions` are learned for every patch, and interpolated to pictures of other sizes (§3.2); or they are waves
    ("sinusoid") or turn queries and keys ("rotary"), half of the channels by the row, half by the column. A distance
    along one line, as ALiBi and T5's buckets count it, is none in a picture. DeiT and DINOv2 are fields of its
    `config`, a `VitConfig`. `transformers` with the same weights gives the same numbers.

    >>> model = VitConfig(8, 12, patch_size=4, channels=1, width=8, heads=2, layers=1, labels=3).build()
    >>> model(torch.ones(5, 1, 8, 12)).shape, model.hidden(torch.ones(5, 1, 16, 12)).shape
    (torch.Size([5, 3]), torch.Size([5, 13, 8]))
    """

    cls_token: nn.Parameter | None
    dist_token: nn.Parameter | None
    register_tokens: nn.Parameter | None
    pooler: nn.Linear | None

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        must_be_vit(config)
        self.config = config
        size, width = config.patch_size, config.width
        self.patches = nn.Conv2d(config.channels, width, size, size)
        self.register_parameter("cls_token", nn.Parameter(torch.empty(width)) if config.cls_token else None)
        self.register_parameter("dist_token", nn.Parameter(torch.empty(width)) if config.dist_token else None)
        registers = nn.Parameter(torch.empty(config.registers, width)) if config.registers else None
        self.register_parameter("register_tokens", registers)
        rows, columns = config.image_height // size, config.image_width // size
        self.added: LearnedGrid | SinusoidGrid | None = None
        if config.positions == "learned":
            self.added = LearnedGrid(rows, columns, width, before=config.placed)
        elif config.positions == "sinusoid":
            self.added = SinusoidGrid(width, before=config.placed)
        self.turned = RotaryGrid(width // config.heads) if config.positions == "rotary" else None
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(EncoderBlock(config.block, positions=self.turned) for _ in range(config.layers))
        self.norm = make_norm("layer", width, eps=config.norm_eps)
        self.pooler = nn.Linear(width, width) if config.pooler else None
        pooled = 2 * width if config.pooling == "cls_mean" else width
        self.classifier = None if config.head == "none" else nn.Linear(pooled, config.labels)
        self.dist_classifier = nn.Linear(width, config.labels) if config.head == "distilled" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew, normal with deviation 0.02; biases are 0, norms 1."""
        draw_weights(self)
        for token in (self.cls_token, self.dist_token, self.register_tokens):
            if token is not None:
                nn.init.normal_(token, std=0.02)

    def forward(self, pictures: Tensor) -> Tensor:
        """What the head answers to `pictures` (b, channels, height, width), whose sides are multiples of a patch."""
        return self.apply_head(self.hidden(pictures))

    def hidden(self, pictures: Tensor) -> Float[Tensor, "b t m"]:
        """The same before the head: every token after the last norm, the patches row by row at the end."""
        must_be_pictures(pictures, self.config.channels, self.config.patch_size)
        x = self.patches(pictures.to(self.patches.weight.dtype))  # b m y x
        rows, columns = x.shape[-2:]
        x = self._stand_before(x.flatten(2).mT, self.cls_token, self.dist_token)  # b t m
        if self.added is not None:
            x = self.added(x, rows, columns)
        x = self.dropout(self._add_registers(x))
        places = None
        if self.turned is not None:
            places = grid_places(rows, columns, before=x.shape[1] - rows * columns).to(x.device)
        for block in self.blocks:
            x = block(x, places=places)
        return self.norm(x)

    def apply_head(self, hidden: Float[Tensor, "b t m"]) -> Tensor:
        """What the head makes of hidden states."""
        if self.classifier is None:
            return hidden
        if self.dist_classifier is not None:
            return (self.classifier(hidden[:, 0]) + self.dist_classifier(hidden[:, 1])) / 2
        patches = hidden[:, self.config.placed + self.config.registers :]
        if self.config.pooling == "mean":
            return self.classifier(patches.mean(1))
        if self.config.pooling == "cls_mean":
            return self.classifier(torch.cat((hidden[:, 0], patches.mean(1)), -1))
        return self.classifier(hidden[:, 0])

    def pool(self, hidden: Float[Tensor, "b t m"]) -> Float[Tensor, "b m"]:
        r"""The class token's state through the pooler, (b, m): $\tanh(x_0 W + b)$."""
        if self.pooler is None:
            raise ShapeError("this model has no pooler; make it with pooler=True, or take hidden[:, 0]")
        return torch.tanh(self.pooler(hidden[:, 0]))

    @property
    def gives_states(self) -> bool:
        """Whether what comes out are hidden states, and no logits."""
        return self.config.head == "none"

    @staticmethod
    def _stand_before(x: Float[Tensor, "b t m"], *tokens: Tensor | None) -> Float[Tensor, "b s m"]:
        """The same with learned tokens in front, where they are there."""
        there = [token.expand(len(x), 1, -1) for token in tokens if token is not None]
        return torch.cat((*there, x), 1) if there else x

    def _add_registers(self, x: Float[Tensor, "b t m"]) -> Float[Tensor, "b s m"]:
        """Registers stand between the other learned tokens and the patches."""
        if self.register_tokens is None:
            return x
        first = self.config.placed
        return torch.cat((x[:, :first], self.register_tokens.expand(len(x), -1, -1), x[:, first:]), 1)

    def extra_repr(self) -> str:
        one = self.config
        return (
            f"{one.image_height} × {one.image_width}, patch_size={one.patch_size}, width={one.width}, head={one.head!r}"
        )


def must_be_vit(config: VitConfig) -> None:
    """Refuse sizes and choices that no `Vit` can have."""
    names = ("image_height", "image_width", "patch_size", "channels", "width", "heads", "layers", "labels")
    must_be_sizes(**{name: getattr(config, name) for name in names})
    must_be_positions(config.positions, POSITIONS)
    must_pool(config.pooling, POOLINGS)
    if config.head not in HEADS:
        raise ValueError(f"head is {config.head!r}; choose one of {', '.join(map(repr, HEADS))}")
    if config.registers < 0:
        raise ShapeError(f"registers is {config.registers}; give 0 or more")
    if config.image_height % config.patch_size or config.image_width % config.patch_size:
        raise ShapeError(
            f"pictures of {config.image_height} × {config.image_width} pixels do not split into patches of "
            f"{config.patch_size}; give sides that are multiples of it"
        )
    needs_cls = config.pooling != "mean" or config.head == "distilled" or config.pooler
    if needs_cls and config.head != "none" and not config.cls_token:
        raise ShapeError(
            f"pooling is {config.pooling!r}, but there is no class token; choose 'mean', or cls_token=True"
        )
    if config.head == "distilled" and (not config.dist_token or config.pooling != "cls"):
        raise ShapeError("the head 'distilled' reads two tokens; make the model with dist_token=True and pooling='cls'")
    if config.pooler and not config.cls_token:
        raise ShapeError("a pooler reads the class token; make the model with cls_token=True")
