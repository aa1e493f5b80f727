"""Mask and bias of a call in compact form, made once although every layer is handed the same tensors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.axes.as_4d import broadcast_4d
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.causal import Causal
from regard.attention.mask.spans import SpanMask
from regard.attention.score.bias import Bias
from regard.trace.doors.scope import Call
from regard.trace.record.compact import compact_any_mask, compact_mask, dense_of, split_bias
from regard.trace.record.diagonals import Diagonals


@dataclass(frozen=True)
class CompactForm:
    """`CompactForm` holds the mask and bias of a call as small as is exact, and how many keys are ever seen."""

    mask: Mask | None
    bias: Tensor | Bias | None
    uniform: bool
    keys: int
    padding_rows_empty: bool = (
        False  # rows that see nothing are even over all slots of a cache, of which only some are kept
    )


class Memo:
    """A cache of compact forms for one step of the model: layers share their mask and bias tensors."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], CompactForm] = {}
        self.alive: list[Tensor] = []  # so that an id stays the id of the same tensor
        self.copies: dict[int, Tensor] = {}
        self.batch: int | None = None  # of what the model was given, once somebody asked

    def copy(self, ids: Tensor) -> Tensor:
        """Token ids as they are now, (b, n); layers share them."""
        if id(ids) not in self.copies:
            self.alive.append(ids)
            self.copies[id(ids)] = (ids[None] if ids.ndim == 1 else ids).detach().cpu().clone()
        return self.copies[id(ids)]

    def form(self, call: Call, sizes: Sizes) -> CompactForm:
        if call.map is not None:
            source, computed = call.map.source, call.map.source.computed
            return CompactForm(source.mask, None if computed is None else computed.bias, False, sizes.k)
        if call.mask is None and call.bias is None:
            plain = (call.causal, sizes.k)
            if plain not in self.known:
                self.known[plain] = CompactForm(Causal("first") if call.causal else None, None, False, sizes.k)
            return self.known[plain]
        key = (mark(call.mask), mark(call.bias), mark(call.rows), call.causal, sizes)
        if key not in self.known:
            self.known[key] = form(call, sizes)
            self.alive += [x for x in (call.mask, call.bias, call.rows) if x is not None]
        return self.known[key]


def mark(x: Tensor | None) -> tuple[int, int] | None:
    return None if x is None else (id(x), 0 if x.is_inference() else x._version)


def form(call: Call, sizes: Sizes) -> CompactForm:
    """What may be looked at, and what is added to the scores, as small as can be said exactly."""
    mask: Mask | None = Causal("first") if call.causal else None
    bias: Tensor | Diagonals | None = None
    uniform = False
    for added in (call.mask, call.bias):
        if added is None:
            continue
        added = broadcast_4d(added.detach(), sizes)[..., : sizes.k]
        if added.dtype == torch.bool:
            part = compact_mask(added, sizes)
        else:
            part, more, blind = split_bias(added, sizes)
            uniform = uniform or (blind and call.sink is None)  # a sink takes a row that sees nothing
            if more is not None:
                bias = more if bias is None else add_biases(bias, more, sizes)
        if part is not None:
            mask = part if mask is None else compact_any_mask(mask & part, sizes)
    if call.rows is not None:  # what was never computed sees nothing
        ends = torch.where(call.rows, sizes.k, 0)[:, None].to(torch.int32)  # b 1 q
        there = SpanMask(torch.zeros_like(ends), ends)
        mask = there if mask is None else compact_any_mask(mask & there, sizes)
    keys = sizes.k
    if mask is not None and call.cached and sizes.q < sizes.k:
        last = compact_any_mask(mask, sizes)
        stop = sizes.k if last is None else last.span(0, sizes.q, sizes)[1]
        if 0 < stop < sizes.k:  # a static cache: nobody sees the room at its end
            fewer = Sizes(sizes.lead, sizes.q, stop)
            seen = dense_of(last, sizes)[..., :stop]
            less: Tensor | Bias | None = None
            if isinstance(bias, Tensor):
                less = bias[..., :stop].clone()
            elif bias is not None:
                less = ShiftedBias(bias, sizes.k - stop)
            return CompactForm(compact_mask(seen, fewer), less, False, stop, padding_rows_empty=uniform)
    if isinstance(bias, Tensor) and bias.data_ptr() in {x.data_ptr() for x in (call.mask, call.bias) if x is not None}:
        bias = bias.clone()
    return CompactForm(mask, bias, uniform, keys)


def add_biases(a: Tensor | Diagonals, b: Tensor | Diagonals, sizes: Sizes) -> Tensor:
    """Two biases that were both added."""
    found: Tensor | None = None
    q = torch.arange(sizes.q) + sizes.offset
    for part in (a, b):
        dense = part if isinstance(part, Tensor) else part.block(q, torch.arange(sizes.k))[None]
        found = dense if found is None else found + dense
    assert found is not None
    return found


class ShiftedBias:
    """A bias by distance whose queries now stand elsewhere on the axis of keys."""

    def __init__(self, bias: Bias, by: int) -> None:
        self.bias, self.by, self.heads = bias, by, bias.heads

    def block(self, queries: Tensor, keys: Tensor, of: Tensor | None = None) -> Tensor:
        return self.bias.block(queries + self.by, keys, of)
