"""Batches of ids that are padded on the right: whether they can be read, and how long each row is."""

import torch
from jaxtyping import Int
from torch import Tensor

from regard.eager import readable
from regard.errors import DtypeError, ShapeError


def must_be_ids(name: str, ids: Tensor, vocabulary: int) -> None:
    """Refuse what is no batch (b, t) of ids below `vocabulary`."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise DtypeError(f"the {name} came as {ids.dtype}, wanted whole numbers; convert it with {name}.long()")
    if ids.dim() != 2 or not ids.shape[1]:
        raise ShapeError(
            f"the {name} came with shape {tuple(ids.shape)}, wanted (b, t) with t of 1 or more; "
            "give one row of ids per text"
        )
    if ids.numel() and readable(ids):
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= vocabulary:
            raise ShapeError(
                f"an id of the {name} is {low if low < 0 else high}, but this model knows {vocabulary} tokens there; "
                f"give ids from 0 to {vocabulary - 1}, of its own vocabulary"
            )


def must_fit(source: Tensor, target: Tensor) -> None:
    """Refuse a batch whose two sides have not as many rows."""
    if source.shape[0] != target.shape[0]:
        raise ShapeError(
            f"a source of {source.shape[0]} rows and a target of {target.shape[0]} came; give one target per source"
        )


def lengths_of(source: Int[Tensor, "b s"], pad: int, name: str = "source") -> Int[Tensor, " b"] | None:
    """How many tokens each row has before its padding; None where no row is padded.

    >>> lengths_of(torch.tensor([[5, 7, 2], [6, 2, 0]]), pad=0)
    tensor([3, 2])
    """
    seen = source != pad
    if readable(source):
        if bool(seen.all()):
            return None
        lengths = seen.sum(1)
        if not torch.equal(seen, torch.arange(source.shape[1]) < lengths[:, None]):
            raise ShapeError(
                f"the {name} has id {pad} before other ids, but that one is padding, and padding stands on the right; "
                "move it there"
            )
        if not bool(lengths.all()):
            row = int(lengths.argmin())
            raise ShapeError(f"row {row} of the {name} is padding alone; give every row one token or more")
        return lengths
    return seen.sum(1)
