"""Which tokens stand before the patches of a picture, and how the patches lie: both are asked of the model.

A number of rows alone says little: ten rows are nine patches and a class token, or ten patches. So tokens before the
patches must be parameters of the model, with names that say so, and the grid must be that of the picture. Rows
that are the channels of a head are no patches.
"""

from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor, nn

from regard.tokens import Tokens, patches

SORTS = {
    "CLS": ("cls_token", "class_token", "class_embedding", "cls_emb", "cls_embed", "class_embed", "cls_tokens"),
    "DIST": ("dist_token", "distillation_token", "dist_tokens"),
    "REG": ("register_tokens", "reg_token", "registers", "reg_tokens", "cls_register_token", "register_token"),
    "DET": ("detection_tokens", "det_token"),
}
BEFORE = ("CLS", "DIST", "REG")  # in this order
COLOURS = 3


class OtherTokens(NamedTuple):
    """The learned tokens that stand beside the patches of a model."""

    before: tuple[str, ...]
    after: int = 0


class PictureTokens:
    """What a model says of the pictures that it reads: plain facts, so that the model can be let go."""

    def __init__(self, modules: Iterable[tuple[str, nn.Module]]) -> None:
        self.patches = False
        self.learned: list[tuple[str, str, int]] = []  # path of a module, sort of token, how many
        self.cuts: set[tuple[int, int]] = set()  # sizes of the patches that a convolution cuts pictures into
        for path, module in modules:
            self.patches = self.patches or "patch" in path.lower()
            if isinstance(module, nn.Conv2d) and module.in_channels == COLOURS and module.kernel_size == module.stride:
                self.cuts.add((module.stride[0], module.stride[1]))
            for name, x in module._parameters.items():
                sort = next((sort for sort, names in SORTS.items() if name in names), "")
                if sort and x is not None:
                    self.learned.append((path, sort, tokens_in(x)))

    def reads(self, pixels: tuple[int, ...]) -> bool:
        """Whether four axes are a picture: they have three colours, or the model speaks of patches."""
        return pixels[1] == COLOURS or self.patches

    def selects(self, first: Tokens | None, pixels: tuple[int, ...]) -> bool:
        """Whether the rows of the first attention are fewer than the patches: which of them they are is not known."""
        if first is None or first.grid is None or len(self.cuts) != 1:
            return False
        ((height, width),) = self.cuts
        return first.grid[0] * first.grid[1] < (pixels[-2] // height) * (pixels[-1] // width)

    def beside(self, layer: str) -> OtherTokens:
        """The tokens beside the patches, for a layer: those of the nearest module around it that has any."""
        parts = layer.split("#")[0].split(".")
        for size in range(len(parts), -1, -1):
            path = ".".join(parts[:size])
            near = [one for one in self.learned if not path or one[0] == path or one[0].startswith(f"{path}.")]
            if near:
                counts = {sort: max((n for _, is_of, n in near if is_of == sort), default=0) for sort in SORTS}
                before = (name for sort in BEFORE for name in number_names(sort, counts[sort]))
                return OtherTokens(tuple(before), counts["DET"])
        return OtherTokens(())

    def name(self, layer: str, count: int, pixels: tuple[int, ...], batch: int) -> tuple[Tokens, ...] | None:
        """Names of so many rows, where the model says which of them are patches and the picture says how they lie."""
        before, after = self.beside(layer)
        for prefix, suffix in dict.fromkeys(((before, after), (before, 0), ((), 0))):
            grid = grid_of(count - len(prefix) - suffix, pixels)
            if grid is not None:
                tokens = patches(*grid, prefix=prefix)
                if suffix:
                    extra = number_names("DET", suffix)
                    special = (*(tokens.special or ()), *(True,) * suffix)
                    tokens = Tokens((*tokens.shown, *extra), special=special)
                return (tokens,) * batch
        return None


def grid_of(count: int, pixels: tuple[int, ...]) -> tuple[int, int] | None:
    """The rows and columns of so many square patches."""
    height, width = pixels[-2:]
    for side in range(1, min(height, width)):
        rows, columns = height // side, width // side
        if height % side == 0 and width % side == 0 and rows * columns == count > FEW:
            return rows, columns
    return None


FEW = 3  # so few rows are rarely a picture


def number_names(name: str, count: int) -> tuple[str, ...]:
    return (f"[{name}]",) if count == 1 else tuple(f"[{name} {n}]" for n in range(count))


def tokens_in(x: Tensor) -> int:
    """How many tokens a parameter holds: (d,), (n, d) or (1, n, d)."""
    return 1 if x.ndim == 1 else x.shape[-2]


def are_channels(count: int, heads: int, stream: tuple[int, ...] | None) -> bool:
    """Whether so many rows are the channels of a head, not the positions of what the module was handed."""
    if stream is None or len(stream) not in (3, 4):
        return False
    if len(stream) == 3:
        return count * heads == stream[2] and count not in stream[:2]
    return count * heads in (stream[1], stream[3]) and count not in (stream[1] * stream[2], stream[2] * stream[3])
