"""Attention that points: from what is being written to the token of the source that could be copied now."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.axes.sizes import Sizes
from regard.attention.mask import Mask
from regard.layers.multihead import split_heads


class PointerOutput(NamedTuple):
    """Where a pointer points, and how much of the next token is generated."""

    gate: Float[Tensor, "b t"]  # the logit of g, the share of the vocabulary in the next token
    copy: Float[Tensor, "b t s"]  # the copy weights: how much each source position would give
    coverage: Float[Tensor, "b t s"] | None  # the copy weights of all earlier tokens, added up; None without coverage


class Pointer(nn.Module):
    r"""One attention head from decoder states to encoder states, whose weights are the probabilities of copying.

    $a_t = \mathrm{softmax}(W^Q s_t \cdot W^K h_i / \sqrt m + w\, c_{t,i})$ and $h^*_t = \sum_i a_{t,i} h_i$; the gate
    is $g_t = \sigma(W [s_t; h^*_t] + b)$ (See, Liu & Manning 2017, eq. 1-3 and 8, with a scaled dot product for their
    additive score).

    With `coverage`, $c_t = \sum_{t' < t} a_{t'}$ (eq. 10) enters the scores by one learned weight w, that starts at 0
    (eq. 11 puts it inside of their tanh). So a row depends on the rows before it. What is expensive, all of the model
    but this sum, is computed for all positions at once; only the sum goes through them in turn, as a decoder does that
    writes token by token, and both give the same numbers. Then one call of `attend`, with $w c$ as its bias, gives all
    rows: who watches sees one layer with one map, and its weights are those that are copied by. An edit of a row
    changes what is copied there; the coverage of later rows counts it only while the model writes token by token.

    >>> pointer = Pointer(8, coverage=True)
    >>> gate, copy, coverage = pointer(torch.randn(2, 3, 8), torch.randn(2, 5, 8))
    >>> gate.shape, copy.sum(-1).allclose(torch.ones(2, 3)), coverage[:, 0].any().item()
    (torch.Size([2, 3]), True, False)
    """

    coverage_weight: nn.Parameter | None

    def __init__(self, width: int, *, coverage: bool = False) -> None:
        super().__init__()
        self.to_q, self.to_k = nn.Linear(width, width), nn.Linear(width, width)
        self.to_gate = nn.Linear(2 * width, 1)
        self.register_parameter("coverage_weight", nn.Parameter(torch.zeros(())) if coverage else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew, as those of a `Translator` are; coverage counts nothing yet."""
        for linear, gain in ((self.to_q, math.sqrt(0.5)), (self.to_k, math.sqrt(0.5)), (self.to_gate, 1.0)):
            nn.init.xavier_uniform_(linear.weight, gain=gain)
            nn.init.zeros_(linear.bias)
        if self.coverage_weight is not None:
            nn.init.zeros_(self.coverage_weight)

    def project(self, memory: Float[Tensor, "e s m"]) -> Float[Tensor, "e 1 s m"]:
        """The keys of a source, once for all that is written about it."""
        return split_heads(self.to_k(memory), 1)

    def forward(
        self,
        hidden: Float[Tensor, "b t m"],
        memory: Float[Tensor, "e s m"],
        *,
        keys: Float[Tensor, "e 1 s m"] | None = None,
        mask: Mask | None = None,
        covered: Float[Tensor, "b s"] | None = None,
    ) -> PointerOutput:
        """`keys` are those of `project`; `covered` are the weights of all tokens before these, added up.

        Several rows side by side may share an entry of the memory: beams of a text.
        """
        (b, t, m), (e, s, _) = hidden.shape, memory.shape
        q = self.to_q(hidden)  # b t m
        k = self.project(memory) if keys is None else keys
        coverage = bias = None
        if self.coverage_weight is not None:
            coverage = self.cover(q, k, mask, covered)  # b t s
            bias = (self.coverage_weight * coverage).reshape(e, 1, -1, s)
        attended = attend(q.reshape(e, 1, -1, m), k, memory[:, None], mask=mask, bias=bias)
        context = attended.mix.reshape(b, t, m)
        gate = self.to_gate(torch.cat([hidden, context], -1)).squeeze(-1)
        return PointerOutput(gate, attended.weights.dense().reshape(b, t, s), coverage)

    def cover(
        self,
        q: Float[Tensor, "b t m"],
        k: Float[Tensor, "e 1 s m"],
        mask: Mask | None,
        covered: Float[Tensor, "b s"] | None,
    ) -> Float[Tensor, "b t s"]:
        """For each of these tokens the copy weights of all that came before it, added up (See et al. 2017, eq. 10)."""
        (b, t, m), (e, _, s, _) = q.shape, k.shape
        total = q.new_zeros(b, s) if covered is None else covered
        if t == 1:
            return total[:, None]
        scores = (q.reshape(e, -1, m) @ k[:, 0].mT).reshape(b, t, s) / math.sqrt(m)
        if mask is not None:
            scores = scores.masked_fill(
                ~seen_keys(mask, e, s, scores)[:, None].repeat_interleave(b // e, 0), -torch.inf
            )
        assert self.coverage_weight is not None
        totals = [total]
        for step in range(t - 1):
            weights = torch.softmax(scores[:, step] + self.coverage_weight * total, -1)  # b s
            total = total + weights
            totals.append(total)
        return torch.stack(totals, 1)

    def extra_repr(self) -> str:
        return f"coverage={self.coverage_weight is not None}"


def seen_keys(mask: Mask, entries: int, size: int, like: Tensor) -> Bool[Tensor, "e s"]:
    """Which positions of each source may be looked at; the mask says the same to every query."""
    return mask.whole(Sizes((entries, 1), 1, size), like.device).expand(entries, 1, 1, size)[:, 0, 0]
