"""What a decoder-only model is given: whether it can be read, where its tokens stand, and who may look at whom."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.mask import Mask, causal, padding, window
from regard.eager import readable
from regard.errors import CacheError, DtypeError, PositionError, ShapeError
from regard.layers import KeyValueCache

if TYPE_CHECKING:
    from regard.models.causal import CausalModel

Rows = Tensor | Sequence[Sequence[int] | Tensor]


class CausalMasks:
    """The mask of each layer in one call: nobody looks ahead, farther than a window, or at padding."""

    def __init__(self, windows: Sequence[int | None], left_padding: Tensor | None, total: int) -> None:
        self.windows = windows
        self.lengths = None if left_padding is None else total - left_padding  # tokens of each row so far

    def at(self, layer: int, cache: KeyValueCache | None, new: int) -> Mask:
        """The mask of one layer, whose cache may hold fewer keys than there were tokens."""
        mask, own = causal(), self.windows[layer]
        if own is not None:
            mask = mask & window(own - 1, keep_first=0 if cache is None else cache.keep_first)
        elif cache is not None and cache.window is not None:
            mask = mask & window(cache.window, keep_first=cache.keep_first)
        if self.lengths is None:
            return mask
        lengths = self.lengths if cache is None else self.lengths.clamp(max=len(cache) + new)
        return mask & padding(lengths, side="left")


def place_tokens(left_padding: Int[Tensor, " b"] | None, seen: int, new: int) -> Int[Tensor, "b t"] | None:
    """Where each token stands, counted from the first that is no padding; None without padding: simply after `seen`.

    >>> place_tokens(torch.tensor([0, 2]), 1, 3)
    tensor([[1, 2, 3],
            [0, 0, 1]])
    """
    if left_padding is None:
        return None
    at = torch.arange(seen, seen + new, device=left_padding.device)
    return (at - left_padding[:, None]).clamp(min=0)


def split_for_gaps(ids: Tensor, cache: Sequence[KeyValueCache] | None) -> Sequence[Tensor]:
    """The ids of one call, cut where a cache closes gaps: each token that lets a key go is read by itself.

    The first keys stand elsewhere for every such token, so that no two of them can look at one set of keys.
    """
    closing = [one for one in cache or () if one.closes_gap]
    if not closing or ids.shape[1] < 2:
        return [ids]
    room = min(one.keep_first + (one.window or 0) + 1 - one.seen for one in closing)
    if ids.shape[1] <= room:
        return [ids]
    first = max(room, 1)
    return [ids[:, :first], *ids[:, first:].split(1, 1)]


def pad_left(prompt: Rows) -> tuple[Tensor, Int[Tensor, " b"] | None]:
    """One batch of rows of different lengths, filled up with id 0 at the front, and by how much each was; None where
    all are equally long.

    >>> pad_left([[3, 1, 4], [5]])
    (tensor([[3, 1, 4],
            [0, 0, 5]]), tensor([0, 2]))
    """
    if isinstance(prompt, Tensor):
        return prompt, None
    rows = [row if isinstance(row, Tensor) else torch.tensor(row, dtype=torch.int64) for row in prompt]
    if not rows or any(row.dim() != 1 for row in rows):
        shapes = ", ".join(str(tuple(row.shape)) for row in rows) or "nothing"
        raise ShapeError(f"a prompt of {shapes} came, wanted a list of rows of ids; give one list per text")
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    if not bool(lengths.all()):
        raise ShapeError(
            f"row {int(lengths.argmin())} of the prompt has no token to begin with; give each at least one"
        )
    left = int(lengths.max()) - lengths
    batch = torch.stack([torch.cat((row.new_zeros(int(pad)), row)) for row, pad in zip(rows, left)])
    return batch, left if bool(left.any()) else None


def must_be_readable(
    model: "CausalModel", ids: Tensor, cache: Sequence[KeyValueCache] | None, left_padding: Tensor | None
) -> None:
    """Refuse what is no batch of ids, what the model does not know, and what is longer than it reads."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise DtypeError(f"ids came as {ids.dtype}, wanted whole numbers; convert them with ids.long()")
    if ids.dim() != 2:
        raise ShapeError(f"ids came with shape {tuple(ids.shape)}, wanted (b, t); give one row per sequence")
    if cache is not None and len(cache) != len(model.blocks):
        raise CacheError(
            f"{len(cache)} caches came for {len(model.blocks)} layers; give one each, as model.make_cache() does"
        )
    if ids.numel() and readable(ids):
        low, high = (int(end) for end in ids.aminmax())
        size = model.embed.num_embeddings
        if low < 0 or high >= size:
            raise ShapeError(
                f"an id is {low if low < 0 else high}, but this model knows {size} tokens; "
                f"give ids from 0 to {size - 1}"
            )
    tokens = ids.shape[1] + (0 if cache is None else cache[0].seen)
    must_fit_context(model, tokens)
    if left_padding is not None:
        must_be_left_padding(left_padding, ids.shape[0], tokens)


def must_fit_context(model: "CausalModel", tokens: int) -> None:
    """Refuse more tokens than a model has positions for."""
    if model.longest is not None and tokens > model.longest:
        raise PositionError(f"{tokens} tokens came, but this model reads at most {model.longest}; shorten the input")


def must_be_left_padding(left_padding: Tensor, rows: int, tokens: int) -> None:
    """Refuse what does not say how many positions at the front of each row are padding."""
    if left_padding.dtype not in (torch.int64, torch.int32) or tuple(left_padding.shape) != (rows,):
        raise ShapeError(
            f"left_padding came as {left_padding.dtype} of shape {tuple(left_padding.shape)}, wanted one whole number "
            f"for each of {rows} rows; give how many positions at the front of each are padding"
        )
    if left_padding.numel() and readable(left_padding):
        low, high = (int(end) for end in left_padding.aminmax())
        if low < 0 or high >= max(tokens, 1):
            raise ShapeError(
                f"left_padding is {low if low < 0 else high} for a row of {tokens} tokens; give 0 to {tokens - 1}"
            )
