"""One learned number per head and range of distances, added to the scores (T5)."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Buckets(nn.Module):
    r"""A bias for the scores: $B_{h,\,\mathrm{bucket}(j - i)}$ for query i and key j, learned for each head.

    With n buckets per direction and $e = \lfloor n/2 \rfloor$, distances below e have a bucket each; a
    further one, $\delta$, has $e + \lfloor (n - e) \ln(\delta/e) / \ln(D/e) \rfloor$, at most n − 1, where
    D is `furthest` (Raffel et al. 2020, §2.1; `_relative_position_bucket` in Mesh TensorFlow). With
    `both_ways` keys after the query have the upper half of the buckets; without, they all fall into bucket 0,
    and a causal mask hides them. From `furthest` on there is one bucket, so any length works. The edges
    between buckets are found in whole numbers, so that no rounded logarithm decides.

    The numbers are `embedding`, an `nn.Embedding(buckets, heads)`, and start normal with deviation 0.02.

    >>> Buckets(heads=2).bucket(torch.tensor([0, -1, 1, -7, -8, -11, -12, -127, 5000]))
    tensor([ 0, 1, 17, 7, 8, 8, 9, 15, 31])
    >>> Buckets(heads=2).block(torch.arange(3), torch.arange(5)).shape
    torch.Size([2, 3, 5])
    """

    def __init__(self, heads: int, *, buckets: int = 32, furthest: int = 128, both_ways: bool = True) -> None:
        super().__init__()
        each_way = buckets // 2 if both_ways else buckets
        if heads < 1:
            raise ValueError(f"heads {heads} came; wanted at least 1")
        if each_way < 2:
            raise ValueError(f"{buckets} buckets came; wanted at least {4 if both_ways else 2}")
        if furthest <= each_way // 2:
            raise ValueError(
                f"furthest {furthest} came, but distances below {each_way // 2} have a bucket each already; "
                f"give furthest more than {each_way // 2}, or fewer buckets"
            )
        self.heads = heads
        self.buckets = buckets
        self.furthest = furthest
        self.both_ways = both_ways
        self._edges = edges_of(each_way, furthest)
        self.embedding = nn.Embedding(buckets, heads)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def bucket(self, relative: Int[Tensor, "*p"]) -> Int[Tensor, "*p"]:
        """The bucket of each relative position, key − query."""
        edges = torch.tensor(self._edges, dtype=torch.int64, device=relative.device)
        if not self.both_ways:
            return torch.bucketize((-relative).clamp(min=0), edges, right=True)
        after = (relative > 0).long() * (self.buckets // 2)
        return after + torch.bucketize(relative.abs(), edges, right=True)

    def block(
        self, queries: Int[Tensor, " r"], keys: Int[Tensor, " c"], of: Int[Tensor, " g"] | None = None
    ) -> Float[Tensor, "g r c"]:
        """The bias of these heads (None: all) for the given query and key positions."""
        numbers = self.embedding.weight if of is None else self.embedding.weight[:, of]  # buckets g
        return F.embedding(self.bucket(keys - queries[:, None]), numbers).permute(2, 0, 1)

    def draw(self, length: int = 32, to: str | Path | None = None, *, head: int = 0) -> "Figure":
        """The bias of one head, a row per query and a column per key; saved when `to` names a file."""
        from regard.views.static.figure import heatmap

        at = torch.arange(length, device=self.embedding.weight.device)
        bias = self.block(at, at, at.new_tensor([head]))[0].detach()
        return heatmap(bias, title=f"Buckets, head {head} of {self.heads}", diverging=True, to=to)

    def extra_repr(self) -> str:
        return f"{self.heads}, buckets={self.buckets}, furthest={self.furthest}, both_ways={self.both_ways}"


def edges_of(buckets: int, furthest: int) -> tuple[int, ...]:
    r"""The smallest distance of each bucket but the first.

    Bucket $e + s$ begins at the smallest $\delta$ with $(\delta/e)^{n-e} \ge (D/e)^s$, in whole numbers.

    >>> edges_of(16, 128)
    (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91)
    """
    exact = buckets // 2
    shared = buckets - exact
    edges = list(range(1, exact + 1))
    for step in range(1, shared):
        distance = int(exact * (furthest / exact) ** (step / shared)) - 1  # rounded logarithms come close
        while distance**shared * exact**step < furthest**step * exact**shared:
            distance += 1
        edges.append(distance)
    return tuple(edges)
