"""A rollout by some rows of each layer, each exactly, and how much the rows that were not looked at may change it.

Rows are drawn by how much flows through them, one from each of r equal shares of the flow. Then the mean of what they
hand on is, without bias, what the layer does. Of any set of inputs that is named beforehand, what flows there moves by
a number between 0 and (1 − ρ) / r with each draw; so after s sampled layers it differs by more than ε with a
probability of 2 exp(−2 ε² r / (s (1 − ρ)²)) at most, whatever the weights are (Azuma 1967, Hoeffding 1963).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.map.sampled import CONFIDENCE
from regard.attention.map.softmax_strips import has_strips
from regard.errors import TraceError
from regard.trace.measure.rollout import Flow, FlowStep, down, follow_down, must_be_share
from regard.trace.measure.stacks import stacks_of
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace


@dataclass(frozen=True, eq=False)
class SampledFlow:
    """`SampledFlow` is where a token is fed from, as `flow` gives it, by some rows of each layer, with a bound.

    What line i says of any set of inputs, such as one token or one paragraph, differs by at most `errors[i]` from what
    all rows say; that holds with a probability of `CONFIDENCE`, 95 %, for any one set and line.
    """

    flow: Flow
    errors: Float[Tensor, " s"]  # 0 where all rows through which anything flows were looked at
    draws: int  # of each layer

    @property
    def exact(self) -> bool:
        """Whether every row counted."""
        return not bool(self.errors.any())

    def describe(self) -> str:
        """What the lowest line shows, and how sure that is.

        >>> lines = Flow(torch.zeros(2, 9), None, ("0",))
        >>> SampledFlow(lines, torch.tensor([0.024, 0.0]), 4096).describe()
        'sampled: 4096 draws in each layer; what comes from any part is sure to ± 2.4 % of the whole (95 % sure)'
        """
        if self.exact:
            return "exact: every row through which anything flows was looked at"
        return (
            f"sampled: {self.draws} draws in each layer; what comes from any part is sure to "
            f"± {float(self.errors.max()):.1%} of the whole ({CONFIDENCE:.0%} sure)"
        ).replace("%", " %")


@torch.no_grad()
def sample_flow(
    trace: Trace,
    token: int,
    *,
    draws: int = 4096,
    seed: int = 0,
    residual: float = 0.5,
    heads: str | Sequence[int] = "mean",
    by: str = "weights",
    batch: int = 0,
    layers: str | Sequence[int] | None = None,
) -> SampledFlow:
    """`flow` by so many draws of rows in each layer, where its map is long: seconds where all rows take a minute.

    Short maps and `heads="max"` are looked at whole.

    >>> from regard.trace.record.trace import Run, Trace
    >>> from regard.attention.map import AttentionMap
    >>> back = AttentionMap.stored(torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])[None, None])
    >>> found = sample_flow(Trace([Run([Layer("0", "self", back), Layer("1", "self", back)])]), token=2)
    >>> found.flow.target[0], found.exact
    (tensor([0.2500, 0.5000, 0.2500], dtype=torch.float64), True)
    """
    must_be_share(residual)
    if draws < 1:
        raise TraceError(f"draws={draws} looks at nothing; give at least 1")
    stacks = stacks_of(trace, layers, entry=batch)
    chance = torch.Generator().manual_seed(seed)
    sampled = [0]  # layers that were, after each step

    def step(layer: Layer, now: Float[Tensor, " q"]) -> FlowStep:
        long = heads != "max" and has_strips(layer.weights.source)
        whole = int(now.count_nonzero()) <= draws
        # What counts as sampled must not hang on what was drawn before: then the bound would not hold.
        sampled.append(sampled[-1] + (long and not (whole and not sampled[-1])))
        if long and not whole:
            now = draw_flow(now, draws, chance)
        return down(layer, now, heads, by, batch, few=True)

    flow = follow_down(stacks, token, residual, step)
    steps = torch.tensor(sampled[::-1], dtype=torch.float64)
    spread = math.log(2 / (1 - CONFIDENCE)) / (2 * draws)
    return SampledFlow(flow, (1 - residual) * (steps * spread).sqrt(), draws)


def draw_flow(now: Float[Tensor, " q"], draws: int, chance: torch.Generator) -> Float[Tensor, " q"]:
    """A vector with the same sum, and the same mean over all draws, of which at most so many numbers are not 0."""
    ends = now.cumsum(0)
    at = (torch.arange(draws) + torch.rand(draws, generator=chance, dtype=now.dtype)) * (ends[-1] / draws)
    last = int(now.nonzero()[-1])
    rows = torch.searchsorted(ends, at, right=True).clamp_max_(last)
    return torch.bincount(rows, minlength=len(now)) * (ends[-1] / draws)
