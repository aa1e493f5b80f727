"""The hyper-parameters of a Vision Transformer: ViT, and as fields DeiT and DINOv2."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.layers import BlockConfig
from regard.models.config import ModelConfig
from regard.models.parts import choose_hidden

if TYPE_CHECKING:
    from regard.models.vit import Vit

HEADS = ("classify", "distilled", "none")
POOLINGS = ("cls", "mean", "cls_mean")
POSITIONS = ("learned", "sinusoid", "rotary", "none")


@dataclass(frozen=True)
class VitConfig(ModelConfig):
    """The sizes of a `Vit`, and which tokens and which head it has, as they stand in a manifest.

    >>> VitConfig(28, 28, patch_size=4, channels=1, width=8, heads=2, layers=1, labels=10).build().classifier
    Linear(in_features=8, out_features=10, bias=True)
    """

    image_height: int  # pixels of the pictures that it was made for; others can be read too
    image_width: int
    patch_size: int  # pixels of a patch in either direction
    width: int  # channels of a token
    heads: int  # heads of a layer
    layers: int  # blocks
    channels: int = 3  # of a pixel: 3 colours, or 1 for shades of grey
    hidden: int | None = None  # channels of the feed-forward network; 4 · width unless given
    head: str = "classify"  # what it answers: "classify", "distilled" (DeiT), or "none" for hidden states
    labels: int = 2  # how many classes there are
    pooling: str = "cls"  # what the classes are told from: "cls", "mean" of the patches, or "cls_mean" (DINOv2)
    cls_token: bool = True  # whether a learned token stands before the patches
    dist_token: bool = False  # whether a second one stands behind it, for distillation (DeiT)
    registers: int = 0  # learned tokens behind these, which have no place (Darcet et al. 2024)
    positions: str = "learned"  # "learned", "sinusoid", "rotary", each in rows and columns, or "none"
    activation: str = "gelu"  # what bends the feed-forward network: "relu", "gelu", "gelu_tanh", "swiglu"
    qkv_bias: bool = True  # whether the projections to q, k and v add one
    layer_scale: float | None = None  # where learned factors of each sublayer start (DINOv2); without any unless given
    norm_eps: float = 1e-6  # what norms add before the root
    dropout: float = 0.0  # share dropped in training
    pooler: bool = False  # whether hidden states come with a pooler of the class token

    @property
    def block(self) -> BlockConfig:
        """The sizes of each block."""
        return BlockConfig(
            self.width,
            self.heads,
            choose_hidden(self.width, self.hidden),
            dropout=self.dropout,
            order="pre",
            norm_eps=self.norm_eps,
            activation=self.activation,
            qkv_bias=self.qkv_bias,
            layer_scale=self.layer_scale,
        )

    @property
    def placed(self) -> int:
        """How many tokens stand before the patches and have a position of their own."""
        return self.cls_token + self.dist_token

    def build(self) -> "Vit":
        """A model of these sizes with random weights."""
        from regard.models.vit import Vit

        return Vit(self)
