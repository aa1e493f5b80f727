"""Query and key compared by a small network, as in the first attention."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.score.bilinear import check_fit, must_be_positive


class Additive(nn.Module):
    r"""Query and key through one hidden layer: $v^\top \tanh(W_1 q + W_2 k)$.

    Bahdanau et al. 2015, appendix A.1.2. Query and key may differ in size. Comparing one block of pairs
    makes rows × columns × hidden numbers.

    >>> import torch
    >>> score = Additive(query=20, key=2, hidden=8)
    >>> score(torch.randn(2, 1, 20), torch.ones(2, 10, 2)).shape
    torch.Size([2, 1, 10])
    """

    is_dot = False

    def __init__(self, *, query: int, key: int, hidden: int) -> None:
        super().__init__()
        must_be_positive(query=query, key=key, hidden=hidden)
        self.query, self.key = query, key
        self.query_to_hidden = nn.Linear(query, hidden, bias=False)
        self.key_to_hidden = nn.Linear(key, hidden, bias=False)
        bound = 1 / math.sqrt(hidden)  # as nn.Linear draws its own
        self.v = nn.Parameter(torch.empty(hidden).uniform_(-bound, bound))

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k e"]
    ) -> tuple[Float[Tensor, "*_b q f"], Float[Tensor, "*_c k f"]]:
        """Each side's share of the hidden layer."""
        check_fit("Additive", q, k, self.query, self.key)
        return self.query_to_hidden(q), self.key_to_hidden(k)

    def compare(self, q: Float[Tensor, "*_b q f"], k: Float[Tensor, "*_c k f"]) -> Float[Tensor, "*_e q k"]:
        """The score of every prepared query with every prepared key."""
        return additive_scores(q, k, self.v)

    def scale(self, width: int) -> float:
        """1: `v` learns its own scale."""
        return 1.0

    def forward(self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k e"]) -> Float[Tensor, "*_e q k"]:
        """Prepare and compare in one call."""
        return self.compare(*self.prepare(q, k))


def additive_scores(
    q: Float[Tensor, "*_b q f"], k: Float[Tensor, "*_c k f"], v: Float[Tensor, " f"]
) -> Float[Tensor, "*_e q k"]:
    r"""$v^\top \tanh(q + k)$ for every pair, both sides already projected to the hidden size.

    >>> import torch
    >>> additive_scores(torch.zeros(1, 2), torch.tensor([[0.0, 1.0], [1.0, 1.0]]), torch.tensor([1.0, 1.0]))
    tensor([[0.7616, 1.5232]])
    """
    hidden = torch.tanh(q[..., :, None, :] + k[..., None, :, :])  # *b q k f
    return hidden @ v.to(hidden.dtype)  # *b q k
