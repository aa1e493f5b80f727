"""Gradient × attention: how much the loss hangs on each weight, computed like the map itself."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.heads import multiply_grouped, pick_key_heads
from regard.attention.axes.select import Index, pick, take
from regard.attention.map import AttentionMap
from regard.attention.map.blocks import walk_blocks
from regard.attention.map.index import as_where, parse
from regard.attention.map.source import widen_dtype
from regard.attention.map.statistics import Place, at, weights_of
from regard.errors import TraceError
from regard.trace.measure.rollout import flow
from regard.trace.measure.stacks import stacks_of
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace, find


class GradientMap:
    r"""A ⊙ ∂L/∂A of a layer, (…, h, q, k): lazy and exact, from the gradient of the mix and the values.

    The mix is $o_i = \sum_j a_{ij} v_j$, so $\partial L / \partial a_{ij} = \mathrm{d}o_i \cdot v_j$: O(n·d) numbers
    hold it. Above 0: more weight there would raise the loss (or the score that was differentiated), to first order.
    Indexed like an `AttentionMap`: batch and head give a smaller one, queries or keys give a tensor. `slopes[…]` is
    ∂L/∂A alone. Chefer et al. (2021, arXiv 2012.09838) take the part above 0 and the mean over heads.

    >>> weights = AttentionMap.stored(torch.tensor([[0.25, 0.75]])[None, None])
    >>> gradient, v = torch.tensor([[1.0, 2.0]])[None, None], torch.tensor([[1.0, 0], [0, -1]])[None, None]
    >>> found = GradientMap(weights, gradient, v)
    >>> found[0, 0]
    GradientMap (q 1, k 2)
    >>> found[0, 0, 0], found.slopes[0, 0, 0]
    (tensor([ 0.2500, -1.5000]), tensor([ 1., -2.]))
    """

    def __init__(self, weights: AttentionMap, gradient: Float[Tensor, "*_b q e"], v: Float[Tensor, "*_c k e"]) -> None:
        wanted = (*weights.shape[:-1], v.shape[-1])
        if tuple(gradient.shape) != wanted or v.shape[-2] != weights.shape[-1]:
            raise TraceError(
                f"the gradient has shape {tuple(gradient.shape)} and the values {tuple(v.shape)}, but the map is "
                f"{weights.shape}; give the gradient of its mix, {wanted}, and the values of its keys"
            )
        dtype = weights.dtype if weights.dtype == torch.float64 else widen_dtype(v.dtype)
        self.weights, self.gradient, self.v = weights, gradient.detach().to(dtype), v.detach().to(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """(…, h, q, k)."""
        return self.weights.shape

    @property
    def slopes(self) -> "Slopes":
        """∂L/∂A alone, indexed like the map."""
        return Slopes(self)

    def pick(self, lead: tuple[Index, ...]) -> "GradientMap":
        """The same for some batch entries and heads."""
        axes = len(self.shape) - 2
        lead = lead + (slice(None),) * (axes - len(lead))
        of_keys = lead
        if axes and self.v.shape[axes - 1] != self.shape[axes - 1]:
            of_keys = (*lead[:-1], pick_key_heads(lead[-1], self.shape[axes - 1], self.v.shape[axes - 1]))
        return GradientMap(self.weights[lead], pick(self.gradient, lead), pick(self.v, of_keys))

    @torch.no_grad()
    def __getitem__(self, item: Any) -> Any:
        chosen = parse(item, self.shape)
        if chosen.rows is None and chosen.columns is None:
            return self.pick(chosen.lead) if chosen.lead else self
        return self.weights[item] * self.slopes[item]

    def rows(self, i: int | slice | Sequence[int] | Tensor) -> Float[Tensor, "..."]:
        """Whole rows, (…, rows, k); a single number gives (…, k)."""
        found: Tensor = self[(..., i, slice(None))]
        return found

    def dense(self) -> Float[Tensor, "*_b q k"]:
        """All of it. The only answer that holds q × k numbers."""
        found: Tensor = self[(..., slice(None), slice(None))]
        return found

    def received(self, *, positive: bool = False) -> Float[Tensor, "*_b k"]:
        """What each key adds over all queries, Σ_i a_ij ∂L/∂a_ij, (…, k); `positive` leaves out what is below 0."""
        return self.sum_along(-2, positive)

    def sum_over_keys(self, *, positive: bool = False) -> Float[Tensor, "*_b q"]:
        """What each query adds over all keys, Σ_j a_ij ∂L/∂a_ij, (…, q); without `positive` it is do_i · o_i."""
        return self.sum_along(-1, positive)

    @torch.no_grad()
    def sum_along(self, axis: int, positive: bool) -> Tensor:
        """Sums along queries (−2) or keys (−1), block by block."""
        *lead, q, k = self.shape
        out = torch.zeros((*lead, k if axis == -2 else q), dtype=torch.float64, device=self.v.device)
        for block in walk_blocks(self.weights.source):
            part = self.pick(block.lead) if block.lead else self
            slopes = slopes_of(part.gradient, part.v, block.rows, block.columns)
            found = slopes.mul_(weights_of(block))
            found = found.clamp_min_(0.0) if positive else found
            here: Place = at(block) if axis == -1 else (*block.lead, ..., block.columns)
            out[here] += found.sum(axis).double()
        return out.to(self.v.dtype)

    def __repr__(self) -> str:
        return repr(self.weights).replace("AttentionMap", "GradientMap").split("), ")[0] + ")"


class Slopes:
    """∂L/∂A of a map, indexed like it; always a tensor."""

    def __init__(self, of: GradientMap) -> None:
        self.of = of

    def __getitem__(self, item: Any) -> Tensor:
        chosen = parse(item, self.of.shape)
        part = self.of.pick(chosen.lead) if chosen.lead else self.of
        rows, one_row = as_where(chosen.rows)
        columns, one_column = as_where(chosen.columns)
        found = slopes_of(part.gradient, part.v, rows, columns)
        found = found.squeeze(-1) if one_column else found
        return found.squeeze(-2 + one_column) if one_row else found


def slopes_of(gradient: Tensor, v: Tensor, rows: slice | Tensor, columns: slice | Tensor) -> Tensor:
    """do_i · v_j at these rows and columns; key heads may be fewer."""
    return multiply_grouped(take(gradient, -2, rows), take(v, -2, columns).mT)


def gradient_map(layer: Layer) -> GradientMap:
    """Gradient × attention of a layer that was watched with `gradients=True`, after a backward pass.

    >>> weights = AttentionMap.stored(torch.tensor([[0.25, 0.75]])[None, None])
    >>> gradient, v = torch.tensor([[1.0, 2.0]])[None, None], torch.tensor([[1.0, 0], [0, -1]])[None, None]
    >>> gradient_map(Layer("0", "self", weights, v=v, gradient=gradient)).received()
    tensor([[[ 0.2500, -1.5000]]])
    """
    if layer.gradient is None:
        raise TraceError(
            f"{layer.name} has no gradient: watch with gradients=True and call backward() on the loss, or on the logit "
            "that is to be explained"
        )
    if layer.v is None:
        raise TraceError(
            f"{layer.name} kept no values, and the gradient of a weight needs them; watch with values=True"
        )
    return GradientMap(layer.weights, layer.gradient, layer.v)


class SideBySide(NamedTuple):
    """Three answers to "what does this token look at", over the same keys, (n,) each."""

    tokens: tuple[str, ...] | None
    attention: Float[Tensor, " n"]  # the raw weights
    rollout: Float[Tensor, " n"]  # through all layers up to this one, to the inputs
    gradient: Float[Tensor, " n"]  # gradient × attention; above 0 raises what was differentiated


def side_by_side(
    trace: Trace,
    token: int,
    *,
    layer: str | int | None = None,
    head: int | None = None,
    batch: int = 0,
    residual: float = 0.5,
    by: str = "weights",
) -> SideBySide:
    """Raw attention, rollout and gradient × attention of one query token, beside each other.

    They answer different questions and often disagree, and raw weights alone mislead (arXiv 1902.10186, 1908.04626).
    `layer` is a path or a number, the last self-attention where it is left out; attention and gradient are of one
    `head`, or the mean over heads. Rollout goes from the token's row in this layer down to the inputs, by the mean over
    heads; in a decoder what came from the source is not among these tokens, so it adds up to less than 1.
    Needs a trace with gradients.

    >>> weights = AttentionMap.stored(torch.tensor([[1.0, 0.0], [0.25, 0.75]])[None, None])
    >>> v = torch.eye(2)[None, None]
    >>> found = side_by_side(Trace([Run([Layer("0", "self", weights, v=v, gradient=v)])]), token=1)
    >>> found.attention, found.rollout, found.gradient
    (tensor([0.2500, 0.7500]), tensor([0.1250, 0.8750], dtype=torch.float64), tensor([0.0000, 0.7500]))
    """
    layers = trace.layers
    own = [one for one in layers if one.kind != "cross"]
    if layer is None and not own:
        raise TraceError("the trace has no self-attention to follow; watch a call of the model first")
    chosen = own[-1] if layer is None else find(layers, layer)
    if chosen.kind == "cross":
        raise TraceError(f"the columns of {chosen.name} are another sequence's; choose a layer of self-attention")
    heads = list(range(chosen.heads)) if head is None else [head]
    chosen.head(heads[0], batch=batch)  # says so where there is no such head, or no such entry
    n = chosen.weights.shape[-2]
    if not -n <= token < n:
        raise TraceError(f"token {token} was asked for, but {chosen.name} has {n}")
    row, entry = token % n, batch % chosen.batch
    weighted = gradient_map(chosen)
    fed = flow(below(layers, chosen, entry), row, residual=residual, by=by, batch=entry)
    return SideBySide(
        None if chosen.keys is None else chosen.keys[entry].shown,
        chosen.weights[entry, heads, row].mean(0).detach(),
        fed.target[0],
        weighted[entry, heads, row].mean(0),
    )


def below(layers: Sequence[Layer], chosen: Layer, entry: int) -> Trace:
    """A trace that ends with this layer: what its stack, and the one it reads from, computed before."""
    stacks = stacks_of(Trace([Run(list(layers))]), entry=entry)
    stack = stacks.target if any(one is chosen for one in stacks.target) else stacks.source
    until = next(i for i, one in enumerate(stack) if one is chosen) + 1
    kept = [*stack[:until]]
    if any(one.kind == "cross" for one in kept):
        kept = [*stacks.source, *kept]
    return Trace([Run(kept)])
