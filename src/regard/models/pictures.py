"""What models of pictures are handed, four axes of numbers in whole patches, and how their weights begin."""

from torch import Tensor, nn

from regard.errors import DtypeError, ShapeError
from regard.positions import LearnedGrid
from regard.positions.window_bias import WindowBias


def must_be_pictures(pictures: Tensor, channels: int, patch_size: int = 1) -> None:
    """Refuse what is no batch of pictures (b, channels, height, width), or has sides that split into no patches."""
    if pictures.dim() != 4 or pictures.shape[1] != channels:
        raise ShapeError(
            f"pictures came with shape {tuple(pictures.shape)}, but this model reads (b, {channels}, height, width); "
            "give a batch of them"
        )
    if not pictures.is_floating_point():
        raise DtypeError(f"pictures came as {pictures.dtype}, wanted floats; scale the pixels first")
    height, width = pictures.shape[-2:]
    if height % patch_size or width % patch_size or not height or not width:
        raise ShapeError(
            f"pictures of {height} × {width} pixels do not split into patches of {patch_size}; resize them to "
            f"multiples of {patch_size}"
        )


def draw_weights(model: nn.Module) -> None:
    """Draw the weights of a model anew, normal with deviation 0.02, cut at twice that; biases are 0, norms 1."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm | LearnedGrid | WindowBias):
            module.reset_parameters()
