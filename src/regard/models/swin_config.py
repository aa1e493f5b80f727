"""The hyper-parameters of a Swin Transformer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.models.config import ModelConfig

if TYPE_CHECKING:
    from regard.models.swin import Swin

HEADS = ("classify", "none")


@dataclass(frozen=True)
class SwinConfig(ModelConfig):
    """The sizes of a `Swin`, stage by stage, as they stand in a manifest.

    >>> SwinConfig(24, 24, patch_size=2, width=6, depths=(1, 2), heads=(2, 3), window=3, labels=5).build().classifier
    Linear(in_features=12, out_features=5, bias=True)
    """

    image_height: int  # pixels of the pictures that it was made for; others can be read too
    image_width: int
    patch_size: int = 4  # pixels of a patch in either direction
    width: int = 96  # channels of a cell in the first stage; each further stage has twice as many
    depths: tuple[int, ...] = (2, 2, 6, 2)  # blocks of each stage
    heads: tuple[int, ...] = (3, 6, 12, 24)  # heads of each stage
    window: int = 7  # cells of a window in either direction
    channels: int = 3  # of a pixel: 3 colours, or 1 for shades of grey
    mlp_ratio: float = 4.0  # channels of the feed-forward network for each of a cell
    head: str = "classify"  # what it answers: "classify", or "none" for hidden states
    labels: int = 2  # how many classes there are
    absolute: bool = False  # whether patches have learned positions of their own, beside the biases of windows
    activation: str = "gelu"  # what bends the feed-forward network: "relu", "gelu", "gelu_tanh"
    qkv_bias: bool = True  # whether the projections to q, k and v add one
    norm_eps: float = 1e-5  # what norms of blocks and the last one add before the root
    dropout: float = 0.0  # share dropped in training
    sees_padding: bool = False  # whether cells that fill up the last windows are looked at, as in `transformers`

    def build(self) -> "Swin":
        """A model of these sizes with random weights."""
        from regard.models.swin import Swin

        return Swin(self)
