"""Whether inputs and positions fit a layer. Each refusal quotes what came, what was wanted and what to do."""

from torch import Tensor

from regard.attention.score.bias import Bias
from regard.errors import ShapeError
from regard.positions import Rotary


def must_end_in(name: str, x: Tensor, width: int, argument: str) -> None:
    if x.is_nested:
        raise ShapeError(
            f"{name} is a nested tensor; pad it to (b, t, {width}), such as x.to_padded_tensor(0.0), "
            "and give mask=regard.padding(lengths)"
        )
    if x.dim() < 2 or x.shape[-1] != width:
        raise ShapeError(
            f"{name} has shape {tuple(x.shape)}, but this layer wants (…, t, {width}); "
            f"give that, or make the layer with {argument}={x.shape[-1] if x.dim() else '…'}"
        )


def must_fit(positions: object, heads: int, head_width: int) -> None:
    """Refuse positions that this layer cannot use."""
    if positions is None:
        return
    if isinstance(positions, Rotary):
        if positions.width != head_width:
            raise ShapeError(
                f"the Rotary turns heads of width {positions.width}, but heads are {head_width} wide; "
                f"give Rotary({head_width})"
            )
    elif isinstance(positions, Bias):
        if positions.heads != heads:
            raise ShapeError(
                f"the {type(positions).__name__} is for {positions.heads} heads, but there are {heads}; "
                f"make it with heads={heads}"
            )
    else:
        raise TypeError(
            f"positions is {type(positions).__name__}, but a layer uses Rotary, or a bias such as ALiBi or Buckets; "
            "Sinusoid and Learned are added to the embeddings before the layer"
        )
