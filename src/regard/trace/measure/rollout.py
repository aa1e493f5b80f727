"""From which inputs a token is fed through all layers: rollout, by vectors only.

A layer's part is one product of a vector with its map, block by block, so memory stays O(n) beside one block.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.map.blocks import BUDGET, walk_blocks
from regard.attention.map.softmax_strips import has_strips
from regard.attention.map.source import Source
from regard.attention.map.statistics import Place, weights_of
from regard.errors import TraceError
from regard.trace.measure.stacks import Stacks, stacks_of
from regard.trace.measure.strip_flow import gather_columns, send_rows
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace


class Flow(NamedTuple):
    """Where a token is fed from: line i is the flow at the input of layer i, the last line is the token itself.

    `target` is over the tokens of its own stack; `source`, where there is an encoder, over those of the source. Each
    line, both parts together, adds up to 1.
    """

    target: Float[Tensor, "s n"]
    source: Float[Tensor, "s m"] | None
    layers: tuple[str, ...]


class FlowStep(NamedTuple):
    """What a layer did with a vector: what arrived on the other side, and what stayed with rows that see nothing."""

    arrived: Float[Tensor, " _n"]
    stayed: Float[Tensor, " _q"]


def rollout(
    trace: Trace,
    token: int,
    *,
    residual: float = 0.5,
    heads: str | Sequence[int] = "mean",
    by: str = "weights",
    batch: int = 0,
    layers: str | Sequence[int] | None = None,
) -> Float[Tensor, "s n"]:
    r"""The flow of one query token of the top layer back to the inputs, (layers + 1, n).

    Line 0 is over the inputs, line i at the input of layer i, the last one is the token itself; each adds up to 1.
    $r_{l} = r_{l+1} (\rho I + (1 - \rho) \bar A_l)$ with the mean $\bar A_l$ over heads and the share `residual` ρ that
    the residual stream keeps (Abnar & Zuidema 2020, arXiv 2005.00928, eq. 1, where ρ = ½).
    `heads` is "mean", "max" (the largest of each cell, rows brought back to one), or the heads to take the mean of.
    `by="values"` weighs each α by the norm of its value, row by row (Kobayashi et al. 2020, 2004.10102, without the
    output projection). A row that sees nothing keeps what it has; a share that a learned sink took is given back.
    `layers` picks layers as part of their path or by number, `batch` the entry.

    What it is not: an explanation. It takes attention for all that mixes tokens and values for all alike; on causal
    models it drifts to the first token with every layer, whatever the text; and weights need not be what a prediction
    rests on (1902.10186, 1908.04626). Only an edit shows a cause.

    >>> from regard.trace.record.trace import Run, Trace
    >>> from regard.attention.map import AttentionMap
    >>> back = AttentionMap.stored(torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])[None, None])
    >>> rollout(Trace([Run([Layer("0", "self", back), Layer("1", "self", back)])]), token=2)
    tensor([[0.2500, 0.5000, 0.2500],
            [0.0000, 0.5000, 0.5000],
            [0.0000, 0.0000, 1.0000]], dtype=torch.float64)
    """
    found = flow(trace, token, residual=residual, heads=heads, by=by, batch=batch, layers=layers)
    if found.source is not None:
        raise TraceError(
            "there is cross-attention, so a token is fed from two inputs: use flow(trace, token), which gives both, "
            "or choose one stack by layers="
        )
    return found.target


@torch.no_grad()
def flow(
    trace: Trace,
    token: int,
    *,
    residual: float = 0.5,
    heads: str | Sequence[int] = "mean",
    by: str = "weights",
    batch: int = 0,
    layers: str | Sequence[int] | None = None,
) -> Flow:
    """`rollout` for one stack, or for an encoder and a decoder.

    Of a decoder token: down through the decoder, where each cross-attention sends 1 − `residual` of what is there to
    the encoder's output, and then, together, down through the encoder. So the source line of an upper layer is what
    has left the decoder above it, and line 0 says which source tokens and which earlier target tokens it came from.

    >>> from regard.trace.record.trace import Run, Trace
    >>> from regard.attention.map import AttentionMap
    >>> own, over = torch.eye(2)[None, None], torch.tensor([[0.0, 0, 1], [0, 0, 1]])[None, None]
    >>> run = Run([Layer("own", "self", AttentionMap.stored(own)), Layer("over", "cross", AttentionMap.stored(over))])
    >>> found = flow(Trace([run]), token=0)
    >>> found.target[0], found.source[0]
    (tensor([0.5000, 0.0000], dtype=torch.float64), tensor([0.0000, 0.0000, 0.5000], dtype=torch.float64))
    """
    must_be_share(residual)
    stacks = stacks_of(trace, layers, entry=batch)
    return follow_down(stacks, token, residual, lambda layer, now: down(layer, now, heads, by, batch))


def follow_down(
    stacks: Stacks, token: int, residual: float, step: Callable[[Layer, Float[Tensor, " q"]], FlowStep]
) -> Flow:
    """A token's flow from the top down; `step` says what a layer does with a vector."""
    now = one_hot(token, stacks.length)
    source = torch.zeros(stacks.source_length, dtype=torch.float64)
    lines = [(now, source)]
    for layer in reversed(stacks.target):
        moved = step(layer, now)
        if layer.kind == "cross":
            source = source + (1 - residual) * moved.arrived
            now = residual * now + (1 - residual) * moved.stayed
        else:
            now = residual * now + (1 - residual) * (moved.arrived + moved.stayed)
        lines.append((now, source))
    for layer in reversed(stacks.source):
        moved = step(layer, source)
        source = residual * source + (1 - residual) * (moved.arrived + moved.stayed)
        lines.append((now, source))
    target, reached = (torch.stack(some) for some in zip(*reversed(lines)))
    return Flow(target, reached if stacks.source_length else None, tuple(layer.name for layer in stacks.layers))


@torch.no_grad()
def spread(
    trace: Trace,
    token: int,
    *,
    residual: float = 0.5,
    heads: str | Sequence[int] = "mean",
    by: str = "weights",
    batch: int = 0,
    layers: str | Sequence[int] | None = None,
) -> Float[Tensor, "s n"]:
    """The other direction: how much of one input token is in every token after each layer, (layers + 1, n).

    Line 0 is the token itself, the last line what of it is in each token at the top: the same numbers as `rollout`,
    read by columns. For one stack; of an encoder and a decoder choose one by `layers`.

    >>> from regard.trace.record.trace import Run, Trace
    >>> from regard.attention.map import AttentionMap
    >>> back = AttentionMap.stored(torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])[None, None])
    >>> spread(Trace([Run([Layer("0", "self", back), Layer("1", "self", back)])]), token=0)
    tensor([[1.0000, 0.0000, 0.0000],
            [1.0000, 0.5000, 0.0000],
            [1.0000, 0.7500, 0.2500]], dtype=torch.float64)
    """
    must_be_share(residual)
    stacks = stacks_of(trace, layers, entry=batch)
    if stacks.source_length:
        raise TraceError("there is cross-attention, so a token may spread through two stacks: choose one by layers=")
    lines = [one_hot(token, stacks.length)]
    for layer in stacks.target:
        now = lines[-1]
        lines.append(residual * now + (1 - residual) * up(layer, now, heads, by, batch))
    return torch.stack(lines)


class RowsPart(NamedTuple):
    """Some rows of a layer's map: of one head, of all that fit, or of their largest."""

    rows: slice
    columns: slice
    weights: Float[Tensor, "*h r c"]
    norms: Float[Tensor, "*h c"] | None  # what each column still has to be weighed by
    heads: int  # over how many the mean is taken

    def total(self) -> Float[Tensor, "*h r"]:
        """What each row adds up to."""
        return self.weights.sum(-1) if self.norms is None else times(self.weights, self.norms)


def down(
    layer: Layer, now: Float[Tensor, " q"], heads: str | Sequence[int], by: str, entry: int, *, few: bool = False
) -> FlowStep:
    """A row vector times the map of a layer: from its queries to its keys; `few` of its numbers may be more than 0."""
    arrived, stayed = (torch.zeros(size, dtype=torch.float64) for size in reversed(layer.weights.shape[-2:]))
    chosen = choose_heads(layer, heads, by, entry)
    if heads != "max" and has_strips(chosen.source):
        for rows, columns, given, kept in send_rows(chosen.source, now, chosen.norms, few=few):
            arrived[columns] += given / chosen.number
            stayed[rows] += kept / chosen.number
        return FlowStep(arrived, stayed)
    for part in parts(chosen, heads, now):
        there = now[part.rows].to(part.weights)
        total = part.total()
        blind = total == 0
        given = times(part.weights.mT, (there / total).masked_fill_(blind, 0.0))  # … c
        given = given if part.norms is None else given * part.norms
        arrived[part.columns] += head_mean(given, part)
        stayed[part.rows] += head_mean(there * blind, part)
    return FlowStep(arrived, stayed)


def up(layer: Layer, now: Float[Tensor, " k"], heads: str | Sequence[int], by: str, entry: int) -> Float[Tensor, " q"]:
    """The map of a layer times a column vector: from its keys to its queries; a row that sees nothing keeps its own."""
    found = torch.zeros(layer.weights.shape[-2], dtype=torch.float64)
    chosen = choose_heads(layer, heads, by, entry)
    if heads != "max" and has_strips(chosen.source):
        for rows, taken in gather_columns(chosen.source, now, chosen.norms):
            found[rows] += taken / chosen.number
        return found
    for part in parts(chosen, heads):
        there, own = now[part.columns].to(part.weights), now[part.rows].to(part.weights)
        total = part.total()
        blind = total == 0
        given = times(part.weights, there if part.norms is None else there * part.norms)  # … r
        found[part.rows] += head_mean((given / total).masked_fill_(blind, 0.0) + own * blind, part)
    return found


class ChosenHeads(NamedTuple):
    """The maps that a mean is taken over, h q k, what their columns are weighed by, and how many they are."""

    source: Source
    norms: Float[Tensor, "h k"] | None
    number: int


def choose_heads(layer: Layer, heads: str | Sequence[int], by: str, entry: int) -> ChosenHeads:
    source: Source = layer.weights.source.pick((entry % layer.batch,))
    norms = None if by == "weights" else norms_of(layer, by, entry).to(source.device, source.dtype)
    if not isinstance(heads, str):
        which = check_heads(layer, heads).to(source.device)
        source, norms = source.pick((which,)), None if norms is None else norms.index_select(0, which)
    elif heads not in ("mean", "max"):
        raise TraceError(f"heads is {heads!r}; give 'mean', 'max' or a list of heads")
    return ChosenHeads(source, norms, source.shape[0])


def parts(
    chosen: ChosenHeads, heads: str | Sequence[int], now: Float[Tensor, " q"] | None = None
) -> Iterator[RowsPart]:
    """The maps of the chosen heads part by part, without the rows from which nothing flows `now`."""
    source, norms, _ = chosen
    count, q, k = source.shape
    if heads != "max":
        for block in walk_blocks(source):
            if now is None or bool(now[block.rows].any()):
                here: Place = (*block.lead, ..., block.columns)
                weighed = None if norms is None else norms[here]
                yield RowsPart(block.rows, block.columns, weights_of(block), weighed, count)
        return
    height = max(1, 4 * BUDGET // max(1, count * k))
    for first in range(0, q, height):
        rows = slice(first, min(q, first + height))
        if now is None or bool(now[rows].any()):
            columns = slice(*source.span(rows.start, rows.stop))
            weights = source.weights(rows, columns).expand(count, -1, -1)
            weights = weights if norms is None else weights * norms[:, None, columns]
            total = weights.sum(-1, keepdim=True)
            yield RowsPart(rows, columns, (weights / total.masked_fill(total == 0, 1.0)).amax(0), None, 1)


def norms_of(layer: Layer, by: str, entry: int) -> Float[Tensor, "h k"]:
    """The length of every value, for every query head."""
    if by != "values":
        raise TraceError(f"by is {by!r}; give 'weights', or 'values' to weigh each by the norm of its value")
    if layer.v is None:
        raise TraceError(
            f"{layer.name} kept no values to weigh by; watch with values=True, or use by='weights'"
        ).with_code("flow.values", layer=layer.name)
    norms = torch.linalg.vector_norm(layer.v[entry % layer.batch].detach().double(), dim=-1)  # g k
    return norms.repeat_interleave(layer.heads // norms.shape[0], 0)


def check_heads(layer: Layer, heads: Sequence[int]) -> Int[Tensor, " h"]:
    wrong = [head for head in heads if not -layer.heads <= head < layer.heads]
    if wrong or not heads:
        came = f"head {wrong[0]}" if wrong else "none"
        raise TraceError(f"{layer.name} has {layer.heads} heads, but {came} was asked for")
    return torch.tensor([head % layer.heads for head in heads])


def times(a: Float[Tensor, "*h r c"], b: Float[Tensor, "*_g c"]) -> Float[Tensor, "*h r"]:
    """Matrices times one vector each."""
    return (a @ b.unsqueeze(-1)).squeeze(-1)


def head_mean(values: Float[Tensor, "*h n"], part: RowsPart) -> Float[Tensor, " n"]:
    """What this part adds to the mean over heads."""
    whole = values.double() if values.ndim == 1 else values.double().sum(0)
    return (whole / part.heads).cpu()


def one_hot(token: int, length: int) -> Float[Tensor, " n"]:
    if not -length <= token < length:
        raise TraceError(f"token {token} was asked for, but there are {length}")
    found = torch.zeros(length, dtype=torch.float64)
    found[token] = 1.0
    return found


def must_be_share(residual: float) -> None:
    if not 0 <= residual <= 1:
        raise TraceError(f"residual is {residual}, but it is the share that passes a layer by; give 0 to 1")
