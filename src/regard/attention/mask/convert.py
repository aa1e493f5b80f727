"""A mask as what others want: a boolean tensor, SDPA's arguments, a block mask, a float mask, a picture."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
from regard.attention.mask.causal import Causal
from regard.attention.mask.lead import tile, whole
from regard.errors import MaskError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.nn.attention.flex_attention import BlockMask

Device = torch.device | str | None


def sizes_of(q: int, k: int | None, batch: int | None, heads: int | None) -> Sizes:
    """Sizes from plain numbers; a batch without heads has one head."""
    k = q if k is None else k
    if batch is None:
        return Sizes(() if heads is None else (heads,), q, k)
    return Sizes((batch, heads or 1), q, k)


def dense(mask: Mask, sizes: Sizes, device: Device = None) -> Bool[Tensor, "..."]:
    mask.check(sizes)
    return tile(mask, sizes, whole(sizes, device)).expand(*sizes.lead, sizes.q, sizes.k)


def to_sdpa(mask: Mask, sizes: Sizes, device: Device = None) -> dict[str, Tensor | bool | None]:
    """SDPA aligns its own causal flag to the first key, so it serves only where both readings agree."""
    mask.check(sizes)
    if isinstance(mask, Causal):
        if mask.offset(sizes) == 0:
            return {"attn_mask": None, "is_causal": True}
        if sizes.q == 1 and mask.offset(sizes) == sizes.k - 1:
            return {"attn_mask": None, "is_causal": False}
    seen = tile(mask, sizes, whole(sizes, device))
    seen = seen.expand(*seen.shape[:-1], sizes.k)
    return {"attn_mask": seen, "is_causal": False}


def to_flex(mask: Mask, sizes: Sizes, device: torch.device | str, block: int) -> "BlockMask":
    from torch.nn.attention.flex_attention import create_block_mask

    if len(sizes.lead) > 2:
        raise MaskError(f"flex_attention knows batch and heads only, not leading axes {sizes.lead}; flatten them")
    mask.check(sizes)
    b, h = sizes.lead if len(sizes.lead) == 2 else (1, sizes.heads)

    return create_block_mask(
        lambda b, h, q, k: mask.cell(Cells(b, h, q, k), sizes),
        b,
        h,
        sizes.q,
        sizes.k,
        device=str(device),
        BLOCK_SIZE=block,
    )


def to_additive(mask: Mask, sizes: Sizes, dtype: torch.dtype, device: Device) -> Float[Tensor, "b h q k"]:
    seen = dense(mask, sizes, device)
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, torch.finfo(dtype).min)


def text(mask: Mask, sizes: Sizes) -> str:
    rows = dense(mask, sizes).reshape(-1, sizes.q, sizes.k).tolist()
    return "\n\n".join("\n".join(" ".join("■" if x else "·" for x in row) for row in one) for one in rows)


def draw(mask: Mask, sizes: Sizes, to: str | Path | None) -> "Figure":
    """The first batch entry and head. A hidden cell is NaN, which a heat map hatches."""
    from regard.views.static.figure import heatmap

    seen = dense(mask, sizes).reshape(-1, sizes.q, sizes.k)[0]
    values = torch.where(seen, 1.0, torch.nan)
    title = f"{mask!r}: {int(seen.sum())} of {seen.numel()} cells"
    return heatmap(values, title=title, numbers=False, to=to)
