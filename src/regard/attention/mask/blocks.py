"""Whole blocks of queries see whole blocks of keys."""

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
from regard.errors import DtypeError, MaskError


class BlockSparse(Mask):
    def __init__(self, layout: Bool[Tensor, "*lead rows columns"], block: int) -> None:
        self.layout, self.block = layout, block

    def check(self, sizes: Sizes) -> None:
        rows, columns = self.layout.shape[-2:]
        want = (-(-sizes.q // self.block), -(-sizes.k // self.block))
        if (rows, columns) != want:
            raise MaskError(
                f"block_sparse has a layout of {rows} × {columns} blocks of {self.block}, but {sizes.q} queries and "
                f"{sizes.k} keys need {want[0]} × {want[1]}; give a layout of that many blocks"
            )
        lead = tuple(self.layout.shape[:-2])
        full = (1,) * (2 - len(sizes.lead[-2:])) + sizes.lead[-2:]
        if len(lead) == 1 and lead[0] not in (1, sizes.heads):
            raise MaskError(
                f"block_sparse has a layout for {lead[0]} heads, but there are {sizes.heads}; "
                "give (heads, rows, columns), or (rows, columns) for all heads"
            )
        if len(lead) == 2 and any(a not in (1, b) for a, b in zip(lead, full)):
            raise MaskError(
                f"block_sparse has a layout led by {lead}, but batch and heads are {full}; give 1 or that many"
            )

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        layout = self.layout.to(at.k.device)
        while layout.ndim < 4:
            layout = layout.unsqueeze(0)
        b = at.b if layout.shape[0] > 1 else torch.zeros_like(at.b)
        h = at.h if layout.shape[1] > 1 else torch.zeros_like(at.h)
        return layout[b, h, at.q // self.block, at.k // self.block]

    def describe(self) -> str:
        share = self.layout.float().mean().item()
        return f"blocks of {self.block} queries see blocks of {self.block} keys, {share:.0%} of them"

    def __repr__(self) -> str:
        return f"block_sparse(layout of shape {tuple(self.layout.shape)}, {self.block})"


def block_sparse(layout: Shaped[Tensor, "*lead rows columns"], block: int) -> Mask:
    """Block (i, j) of `block` × `block` cells is seen where `layout[i, j]` is True.

    `layout` is (rows, columns) for all heads, (h, rows, columns) per head, or (b, h, rows, columns). The
    last block may be cut: lengths need not be a multiple of `block`.

    >>> import torch
    >>> print(block_sparse(torch.eye(2, dtype=torch.bool), 2).text(3))
    ■ ■ ·
    ■ ■ ·
    · · ■
    """
    if layout.dtype != torch.bool:
        raise DtypeError(f"the layout is {layout.dtype}, but it says True or False; give layout.bool()")
    if not 2 <= layout.ndim <= 4:
        raise MaskError(
            f"the layout has shape {tuple(layout.shape)}; give (rows, columns), (h, rows, columns) "
            "or (b, h, rows, columns)"
        )
    if block < 1:
        raise ValueError(f"block is {block}, but a block holds at least 1 position; give 1 or more")
    return BlockSparse(layout.detach().clone(), block)
