"""A bias that depends only on how far the key stands from the query: one number per diagonal of the map."""

from jaxtyping import Float, Int
from torch import Tensor

from regard.eager import readable
from regard.errors import PositionError, ShapeError


class Diagonals:
    """What T5's buckets, ALiBi and their like add to the scores, (h, q + k − 1) numbers in place of (h, q, k).

    `values[h, key − query + keys − 1]` is added where `query` and `key` are positions with aligned ends; with one
    head in `values` it serves `heads` of them. The tensor belongs to the bias. It is a `regard` bias: `.block(…)`.

    >>> import torch
    >>> Diagonals(torch.tensor([[-2.0, -1, 0, -1, -2]]), keys=3).block(torch.arange(1, 3), torch.arange(3))
    tensor([[[-1.,  0., -1.],
             [-2., -1.,  0.]]])
    """

    def __init__(self, values: Float[Tensor, "_h _n"], *, keys: int, heads: int | None = None) -> None:
        self.heads = values.shape[0] if heads is None else heads
        if values.shape[0] not in (1, self.heads):
            raise ShapeError(f"diagonals of {values.shape[0]} heads came for {self.heads}; give one, or one for each")
        self.values, self.keys = values, keys

    def block(
        self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None
    ) -> Float[Tensor, "g r c"]:
        """The bias of these heads (None: all) for the given query and key positions."""
        values = self.values.to(queries.device)
        if values.shape[0] == 1:
            values = values.expand(self.heads, -1)
        if of is not None:
            values = values.index_select(0, of.to(values.device))
        at = keys - queries[:, None] + (self.keys - 1)  # r c
        if readable(at) and at.numel():
            low, high = (int(end) for end in at.aminmax())
            if low < 0 or high >= values.shape[1]:
                raise PositionError(
                    f"the bias knows distances from {1 - self.keys} to {values.shape[1] - self.keys}, but one from "
                    f"{low + 1 - self.keys} to {high + 1 - self.keys} was asked for; ask inside the map it came from"
                )
        return values[:, at]

    def __repr__(self) -> str:
        return f"Diagonals(h {self.heads}, {self.values.shape[1]} distances)"
