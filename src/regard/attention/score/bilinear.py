"""Query and key compared through a learned matrix."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ShapeError


class Bilinear(nn.Module):
    r"""Query and key through one learned matrix: $q^\top W k$ (Luong et al. 2015, §3.1, "general").

    Query and key may differ in size. `prepare` takes the query through W, and what remains is a dot product.

    >>> import torch
    >>> score = Bilinear(query=3, key=2)
    >>> q, k = torch.randn(5, 3), torch.randn(7, 2)
    >>> score(q, k).shape
    torch.Size([5, 7])
    >>> torch.allclose(score(q, k), q @ score.weight @ k.mT, atol=1e-6)
    True
    """

    is_dot = True

    def __init__(self, *, query: int, key: int) -> None:
        super().__init__()
        must_be_positive(query=query, key=key)
        self.query, self.key = query, key
        bound = 1 / math.sqrt(query)  # as nn.Linear draws its own
        self.weight = nn.Parameter(torch.empty(query, key).uniform_(-bound, bound))

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k e"]
    ) -> tuple[Float[Tensor, "*_b q e"], Float[Tensor, "*_c k e"]]:
        """The query taken to where keys live, and the key as it came."""
        check_fit("Bilinear", q, k, self.query, self.key)
        return q @ self.weight, k

    def compare(self, q: Float[Tensor, "*_b q e"], k: Float[Tensor, "*_c k e"]) -> Float[Tensor, "*_e q k"]:
        """The product of every prepared query with every key."""
        return q @ k.mT  # *b q k

    def scale(self, width: int) -> float:
        """1: the matrix learns its own scale."""
        return 1.0

    def forward(self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k e"]) -> Float[Tensor, "*_e q k"]:
        """Prepare and compare in one call."""
        return self.compare(*self.prepare(q, k))

    def extra_repr(self) -> str:
        return f"query={self.query}, key={self.key}"


def must_be_positive(**sizes: int) -> None:
    """Refuse a size that is not at least 1, by name."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size} is no size; give the number of channels, at least 1")


def check_fit(score: str, q: Tensor, k: Tensor, query: int, key: int) -> None:
    """Refuse queries and keys of other sizes than the score was built for, quoting both."""
    if (q.shape[-1], k.shape[-1]) != (query, key):
        raise ShapeError(
            f"{score} was built for query={query} and key={key}, "
            f"but q {tuple(q.shape)} ends in {q.shape[-1]} and k {tuple(k.shape)} ends in {k.shape[-1]}; "
            f"give it such tensors or build one with query={q.shape[-1]} and key={k.shape[-1]}"
        )
