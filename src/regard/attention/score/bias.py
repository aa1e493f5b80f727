"""What is added to the scores: a tensor, or an object that gives any block of it when asked."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Bias(Protocol):
    """A position bias that is never stored whole, such as ALiBi or T5's buckets.

    `queries` and `keys` are positions on one common axis: where there are more keys than queries (a cache)
    the ends are aligned, so the last query stands at the last key. `of` picks heads (None: all).
    """

    heads: int

    def block(
        self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None
    ) -> Float[Tensor, "g r c"]:
        """The bias of these heads for every given query position with every given key position."""
        ...
