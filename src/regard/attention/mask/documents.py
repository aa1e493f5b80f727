"""Several documents packed into one sequence."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
from regard.errors import MaskError


class Documents(Mask):
    def __init__(self, ids: Int[Tensor, "*_b k"], of_queries: Int[Tensor, "*_c q"] | None) -> None:
        self.ids, self.of_queries = ids, of_queries

    def check(self, sizes: Sizes) -> None:
        for ids, whose, length in (
            (self.ids, "keys", sizes.k),
            (self.of_queries, "queries", sizes.q),
        ):
            if ids is None:
                continue
            shape = tuple(ids.shape)
            if shape not in ((length,), (*sizes.batch, length)):
                raise MaskError(
                    f"documents has ids of shape {shape} for the {whose}, but there are {length} {whose} in a "
                    f"batch of {sizes.batch}; give one id per position, {(length,)} or {(*sizes.batch, length)}"
                )
        if self.of_queries is None and sizes.q > sizes.k:
            raise MaskError(
                f"documents has ids for {sizes.k} keys, but there are {sizes.q} queries; "
                "name theirs with documents(ids, of_queries=…)"
            )

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        ids = self.ids.to(at.k.device)
        of_keys = ids[at.k] if ids.ndim == 1 else ids.reshape(-1, sizes.k)[at.b, at.k]
        if self.of_queries is None:  # self-attention; with a cache the queries are the last keys
            place = at.q + sizes.offset
            of_query = ids[place] if ids.ndim == 1 else ids.reshape(-1, sizes.k)[at.b, place]
        else:
            asked = self.of_queries.to(at.k.device)
            of_query = asked[at.q] if asked.ndim == 1 else asked.reshape(-1, sizes.q)[at.b, at.q]
        return of_keys == of_query

    def describe(self) -> str:
        return "each query sees only the keys of its own document"

    def __repr__(self) -> str:
        return f"documents(ids of shape {tuple(self.ids.shape)})"


def documents(
    ids: Int[Tensor, "*_b k"] | Sequence[int], *, of_queries: Int[Tensor, "*_c q"] | Sequence[int] | None = None
) -> Mask:
    """A query sees only the keys that carry its own document's id: packed documents never leak.

    `ids` is (k,) or (b, k), one id per key. The queries are the same positions (with a cache: the last of
    them) unless `of_queries` names theirs. Combine with `causal()` for packed language modelling.

    >>> print((documents([7, 7, 4, 4]) & __import__("regard").causal()).text(4))
    ■ · · ·
    ■ ■ · ·
    · · ■ ·
    · · ■ ■
    """
    own = ids.detach().clone() if isinstance(ids, Tensor) else torch.tensor(ids, device="cpu")
    asked = of_queries
    if asked is not None:
        asked = asked.detach().clone() if isinstance(asked, Tensor) else torch.tensor(asked, device="cpu")
    for t in (own, asked):
        if t is not None and t.ndim == 0:
            raise MaskError("documents got a single id; give one id per position, such as documents([0, 0, 1])")
    return Documents(own, asked)
