"""A Swin Transformer: attention within shifted windows, and cells merged from stage to stage (Liu et al. 2021)."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.layers import FeedForward, Residual
from regard.layers.dropout import Dropout
from regard.layers.windows import WindowAttention
from regard.models.parts import must_be_sizes
from regard.models.pictures import draw_weights, must_be_pictures
from regard.models.swin_config import HEADS, SwinConfig
from regard.positions import LearnedGrid


class SwinBlock(nn.Module):
    """Attention within windows, then feed-forward, each pre-norm with its residual (Liu et al. 2021, eq. 3)."""

    def __init__(self, config: SwinConfig, stage: int, *, shift: int) -> None:
        super().__init__()
        width = config.width * 2**stage
        self.attention = WindowAttention(
            width, config.heads[stage], config.window,
            shift=shift, bias=config.qkv_bias, sees_padding=config.sees_padding,
        )  # fmt: skip
        hidden = int(width * config.mlp_ratio)
        self.feed_forward = FeedForward(width, hidden, activation=config.activation, dropout=config.dropout)
        self.around_attention, self.around_feed_forward = (
            Residual(width, "pre", dropout=config.dropout, eps=config.norm_eps) for _ in range(2)
        )

    def forward(self, x: Float[Tensor, "b y x m"]) -> Float[Tensor, "b y x m"]:
        return self.around_feed_forward(self.around_attention(x, self.attention), self.feed_forward)


class PatchMerging(nn.Module):
    """Four neighbouring cells side by side become one with twice the channels of each (Liu et al. 2021, §3.1).

    A last row or column that is alone is merged with cells of 0.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Float[Tensor, "b y x m"]) -> Float[Tensor, "b v u n"]:
        if x.shape[1] % 2 or x.shape[2] % 2:
            x = F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))
        pairs = x.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))  # b v 2 u 2 m
        return self.reduce(self.norm(pairs.permute(0, 1, 3, 4, 2, 5).flatten(3)))


class SwinStage(nn.Module):
    """Blocks on one grid of cells, every other one with shifted windows, and before the next stage a merging."""

    def __init__(self, config: SwinConfig, stage: int) -> None:
        super().__init__()
        shifts = [config.window // 2 if block % 2 else 0 for block in range(config.depths[stage])]
        self.blocks = nn.ModuleList(SwinBlock(config, stage, shift=shift) for shift in shifts)
        last = stage == len(config.depths) - 1
        self.merge = None if last else PatchMerging(config.width * 2**stage)

    def forward(self, x: Float[Tensor, "b y x m"]) -> Float[Tensor, "b v u n"]:
        for block in self.blocks:
            x = block(x)
        return x if self.merge is None else self.merge(x)


class Swin(nn.Module):
    r"""Pictures → logits of their classes, (b, labels): attention in windows, in stages (Liu et al. 2021, figure 3).

    Patches are projected and normed, and blocks of `WindowAttention` follow, every other one with windows that are
    shifted by half. After each stage but the last, 2 × 2 cells are merged. The classes are told from the mean of all
    cells after a last norm; `head` "none" gives the cells themselves, row by row, (b, t, m). Pictures of any size are
    read: what is missing of a patch or a window is filled up with 0. `transformers` with the same weights gives the
    same numbers, also for windows that are filled up if the config has `sees_padding`.

    >>> import torch
    >>> config = SwinConfig(24, 24, patch_size=2, width=6, depths=(1, 2), heads=(2, 3), window=3, labels=5)
    >>> model = config.build()
    >>> model(torch.ones(4, 3, 24, 24)).shape, model.hidden(torch.ones(4, 3, 20, 31)).shape
    (torch.Size([4, 5]), torch.Size([4, 40, 12]))
    """

    def __init__(self, config: SwinConfig) -> None:
        super().__init__()
        must_be_swin(config)
        self.config = config
        size = config.patch_size
        self.patches = nn.Conv2d(config.channels, config.width, size, size)
        self.embed_norm = nn.LayerNorm(config.width)
        rows, columns = (-(-pixels // size) for pixels in (config.image_height, config.image_width))
        self.added = LearnedGrid(rows, columns, config.width) if config.absolute else None
        self.dropout = Dropout(config.dropout)
        self.stages = nn.ModuleList(SwinStage(config, stage) for stage in range(len(config.depths)))
        self.norm = nn.LayerNorm(self.last_width, eps=config.norm_eps)
        self.classifier = None if config.head == "none" else nn.Linear(self.last_width, config.labels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew, normal with deviation 0.02; biases are 0, norms 1."""
        draw_weights(self)

    def forward(self, pictures: Tensor) -> Tensor:
        """What the head answers to `pictures` (b, channels, height, width)."""
        hidden = self.hidden(pictures)
        return hidden if self.classifier is None else self.classifier(self.pool(hidden))

    def hidden(self, pictures: Tensor) -> Float[Tensor, "b t m"]:
        """The same before the head: the cells of the last stage after the last norm, row by row."""
        must_be_pictures(pictures, self.config.channels)
        height, width = pictures.shape[-2:]
        size = self.config.patch_size
        pixels = F.pad(pictures.to(self.patches.weight.dtype), (0, -width % size, 0, -height % size))
        x = self.patches(pixels)  # b m y x
        rows, columns = x.shape[-2:]
        x = self.embed_norm(x.flatten(2).mT)
        if self.added is not None:
            x = self.added(x, rows, columns)
        x = self.dropout(x).unflatten(1, (rows, columns))
        for stage in self.stages:
            x = stage(x)
        return self.norm(x.flatten(1, 2))

    def pool(self, hidden: Float[Tensor, "b t m"]) -> Float[Tensor, "b m"]:
        """The mean of all cells."""
        return hidden.mean(1)

    @property
    def last_width(self) -> int:
        """Channels of a cell of the last stage."""
        return self.config.width * 2 ** (len(self.config.depths) - 1)

    @property
    def gives_states(self) -> bool:
        """Whether what comes out are hidden states, and no logits."""
        return self.config.head == "none"

    def extra_repr(self) -> str:
        one = self.config
        size = f"{one.image_height} × {one.image_width}, patch_size={one.patch_size}"
        return f"{size}, width={one.width}, window={one.window}, head={one.head!r}"


def must_be_swin(config: SwinConfig) -> None:
    """Refuse sizes and choices that no `Swin` can have."""
    names = ("image_height", "image_width", "patch_size", "channels", "width", "window", "labels")
    must_be_sizes(**{name: getattr(config, name) for name in names})
    if config.head not in HEADS:
        raise ValueError(f"head is {config.head!r}; choose one of {', '.join(map(repr, HEADS))}")
    if not config.depths or len(config.depths) != len(config.heads) or min(config.depths) < 1:
        raise ShapeError(
            f"depths {config.depths} and heads {config.heads} came; give at least one stage, a number of blocks and of "
            "heads for each"
        )
    if not config.mlp_ratio * config.width >= 1:
        raise ShapeError(f"mlp_ratio is {config.mlp_ratio}, which leaves no channels; give more")
