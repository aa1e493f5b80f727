"""The masks that survive without a matrix: a key is there for every query, or for those at and behind it."""

from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.attention.axes.as_4d import expand_4d
from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import And, Both, Mask, Not
from regard.attention.mask.causal import Causal
from regard.attention.mask.lead import tile, whole
from regard.attention.mask.padding import Padding
from regard.attention.mask.tensor import TensorMask
from regard.errors import PathError


class KeyMask(NamedTuple):
    """What a mask asks: that query i sees no key after i + `ahead` (None: all), and of the keys only `keys`."""

    ahead: int | None = None
    keys: Bool[Tensor, "_b _h 1 _k"] | None = None


def split_mask(mask: Mask | None, sizes: Sizes, device: torch.device, why: str) -> KeyMask:
    """The mask taken apart. What is left over is refused with `why`, a sentence that is told the mask."""
    found = KeyMask()
    for part in () if mask is None else list_conjuncts(mask):
        if isinstance(part, Causal):
            ahead = part.offset(sizes)
            found = found._replace(ahead=ahead if found.ahead is None else min(ahead, found.ahead))
        elif is_of_keys(part, sizes):
            first = torch.zeros(1, dtype=torch.long, device=device)
            keys = expand_4d(tile(part, sizes, whole(sizes, device), rows=first), sizes)
            found = found._replace(keys=keys if found.keys is None else found.keys & keys)
        else:
            raise PathError(why.format(mask=repr(part)))
    return found


def list_conjuncts(mask: Mask) -> list[Mask]:
    return list_conjuncts(mask.left) + list_conjuncts(mask.right) if isinstance(mask, And) else [mask]


def is_of_keys(mask: Mask, sizes: Sizes) -> bool:
    """Whether the mask is known to say the same of a key to every query."""
    if isinstance(mask, Both):
        return is_of_keys(mask.left, sizes) and is_of_keys(mask.right, sizes)
    if isinstance(mask, Not):
        return is_of_keys(mask.inner, sizes)
    if isinstance(mask, Padding):
        return not mask.is_per_query(sizes)
    if isinstance(mask, TensorMask):
        per_query = dict(zip(mask.axes, mask.tensor.shape)).get("q", 1) if mask.axes else mask.tensor.shape[-2]
        return per_query == 1
    return False
