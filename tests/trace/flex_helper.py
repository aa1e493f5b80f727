"""A file that helps a model's own, and calls `flex_attention` by a name of its own."""

from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention as flexible


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mixed = flexible(q, k, v)
    assert isinstance(mixed, Tensor)
    return mixed
