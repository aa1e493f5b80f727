"""Strips of a sparse map through PyTorch's CPU kernel, forward and backward, without ever holding them all."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.sparse.masked import MaskCells
from regard.attention.sparse.strips import ROOM, Pattern, Strip, add_keys, columns_of, extra_of, keys_of, strips
from regard.errors import PathError

forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


class BandedAttention(torch.autograd.Function):
    """q, k, v of one width, (b, h, q, d) and (b, h, k, d) → mix. The gradient walks the same strips again."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, pattern: Pattern, scale: float) -> Float[Tensor, "b h q d"]:
        mix, logs = attend_strips(q, k, v, pattern, scale)
        ctx.save_for_backward(q, k, v, mix, logs)
        ctx.pattern, ctx.scale = pattern, scale
        return mix

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        if torch.is_grad_enabled() and slope.requires_grad:
            raise PathError("the banded kernel has no second derivative; attend(…, path='explicit') has all of them")
        q, k, v, mix, logs = ctx.saved_tensors
        return (*differentiate_strips(slope, q, k, v, mix, logs, ctx.pattern, ctx.scale), None, None)


def attend_strips(q: Tensor, k: Tensor, v: Tensor, pattern: Pattern, scale: float) -> tuple[Tensor, Tensor]:
    """(mix, log-normalisers), b h q d and b h q."""
    shape = q.shape
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    mix, logs = torch.empty_like(q), q.new_empty(q.shape[:2], dtype=torch.promote_types(q.dtype, torch.float32))
    masked = MaskCells(pattern, (shape[0], shape[1]), q.dtype)
    for strip in strips(pattern, room_for(q, pattern)):
        keys, values, added = part_of(k, v, pattern, strip, masked, shape)
        some = slice(strip.first, strip.first + strip.blocks * strip.height)
        queries = q[:, some].unflatten(1, (strip.blocks, strip.height))
        if not keys.shape[2]:
            mix[:, some], logs[:, some] = 0.0, 0.0
            continue
        part, log = forward(queries, keys, values, 0.0, False, attn_mask=added, scale=scale)
        mix[:, some], logs[:, some] = part.flatten(1, 2), log.flatten(1, 2)
    mix, logs = mix.unflatten(0, shape[:2]), logs.unflatten(0, shape[:2])
    rows = pattern.cover.queries
    if rows is not None and len(rows):
        held_back = masked.add_to_queries()
        if masked.is_blind(held_back):
            mix[:, :, rows], logs[:, :, rows] = 0.0, 0.0
            return mix, logs
        whole = [x.unflatten(0, shape[:2]) for x in (q, k, v)]
        part, log = forward(whole[0][:, :, rows], *whole[1:], 0.0, False, attn_mask=held_back, scale=scale)
        mix[:, :, rows], logs[:, :, rows] = part, log
    return mix, logs


def differentiate_strips(
    slope: Tensor, q: Tensor, k: Tensor, v: Tensor, mix: Tensor, logs: Tensor, pattern: Pattern, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients for q, k and v."""
    shape, rows = q.shape, pattern.cover.queries
    of_q, of_k, of_v = (torch.zeros(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    masked = MaskCells(pattern, (shape[0], shape[1]), q.dtype)
    if rows is not None and len(rows):
        held_back, of_rows = masked.add_to_queries(), torch.zeros_like(q[:, :, rows])
        if not masked.is_blind(held_back):
            whole = slope[:, :, rows].contiguous(), q[:, :, rows], k, v, mix[:, :, rows], logs[:, :, rows]
            of_rows, more_k, more_v = backward(*whole, 0.0, False, attn_mask=held_back, scale=scale)
            of_k += more_k
            of_v += more_v
        # These rows went another way; in their strips exp(score − ∞) is 0, whatever the score.
        slope, logs = slope.index_fill(2, rows, 0.0), logs.index_fill(2, rows, torch.inf)
    flat_q, flat_k, flat_v, flat_mix, flat_logs, flat_slope = (x.flatten(0, 1) for x in (q, k, v, mix, logs, slope))
    to_q, to_k, to_v = (x.flatten(0, 1) for x in (of_q, of_k, of_v))
    for strip in strips(pattern, room_for(flat_q, pattern)):
        keys, values, added = part_of(flat_k, flat_v, pattern, strip, masked, shape)
        if not keys.shape[2]:
            continue
        some = slice(strip.first, strip.first + strip.blocks * strip.height)

        def cut(x: Tensor) -> Tensor:
            return x[:, some].unflatten(1, (strip.blocks, strip.height))  # noqa: B023

        g_q, g_k, g_v = backward(
            cut(flat_slope),
            cut(flat_q),
            keys,
            values,
            cut(flat_mix),
            cut(flat_logs),
            0.0,
            False,
            attn_mask=added,
            scale=scale,
        )
        to_q[:, some] = g_q.flatten(1, 2)
        for total, part in ((to_k, g_k), (to_v, g_v)):
            give_back(total, part, pattern, strip, shape)
    if rows is not None and len(rows):
        of_q[:, :, rows] = of_rows
    return of_q, of_k, of_v


def room_for(q: Float[Tensor, "n q d"], pattern: Pattern) -> int:
    """How many keys the blocks of a strip may have in all: gathered, or as a mask of each block's queries."""
    return ROOM // max(1, q.shape[0] * max(q.shape[-1], pattern.block))


def part_of(
    k: Tensor, v: Tensor, pattern: Pattern, strip: Strip, masked: MaskCells, shape: torch.Size
) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values of a strip, extra ones first, and what is added to their scores, all with (b · h, s, …)."""
    at = extra_of(pattern, strip)
    if at is None:
        keys, values = keys_of(k, strip), keys_of(v, strip)
    else:
        places = torch.cat([at.clamp_min(0), columns_of(strip).expand(at.shape[0], -1, -1)], -1)
        keys, values = gather(k, places, shape), gather(v, places, shape)
    added = masked(strip)
    b, h = added.shape[:2]
    if (b, h) == (1, 1):
        return keys, values, added[0]
    return keys, values, added.expand(shape[0], shape[1], *added.shape[2:]).flatten(0, 1)


def gather(x: Float[Tensor, "n k d"], places: Int[Tensor, "h s w"], shape: torch.Size) -> Float[Tensor, "n s w d"]:
    """The keys at these places, for all heads alike or for each, in one pass over memory."""
    if places.shape[0] == 1:
        return x.index_select(1, places.flatten()).unflatten(1, places.shape[1:])
    first = torch.arange(x.shape[0]).reshape(*shape[:2], 1, 1) * x.shape[1]
    return x.flatten(0, 1).index_select(0, (first + places).flatten()).reshape(x.shape[0], *places.shape[1:], -1)


def give_back(total: Tensor, part: Tensor, pattern: Pattern, strip: Strip, shape: torch.Size) -> None:
    """Add what a strip has for its keys to all keys."""
    at = extra_of(pattern, strip)
    if at is None:
        add_keys(total, part, strip)
        return
    count = at.shape[-1]
    extra, places = part[:, :, :count], at.clamp_min(0)
    if at.shape[0] == 1:
        total.index_add_(1, places[0].flatten(), extra.flatten(1, 2))
    else:
        by_head, more = total.unflatten(0, shape[:2]), extra.unflatten(0, shape[:2])
        for head in range(shape[1]):
            by_head[:, head].index_add_(1, places[head].flatten(), more[:, head].flatten(1, 2))
    add_keys(total, part[:, :, count:], strip)
