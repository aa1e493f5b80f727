"""The fast-path door: torch's encoder layers and `nn.MultiheadAttention` in eval mode run as one native operator.

Nothing inside of it can be intercepted, so q, k and v are made again from its arguments, by the same projection.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.trace.doors.call_site import CallSite, place_of
from regard.trace.doors.change import apply_changes, tell_listeners
from regard.trace.doors.scope import Call, ListenerScope, current_scope, paused
from regard.trace.record.findings import LayerState

LAYER, HEADS = "_transformer_encoder_layer_fwd", "_native_multi_head_attention"


def open_fastpath() -> Callable[[], None]:
    """Stand in front of the two native operators; gives back how to undo it."""
    layer, heads = getattr(torch, LAYER), getattr(torch, HEADS)
    setattr(torch, LAYER, wrap_operator(layer, layer_call))
    setattr(torch, HEADS, wrap_operator(heads, heads_call))

    def close() -> None:
        setattr(torch, LAYER, layer)
        setattr(torch, HEADS, heads)

    return close


def wrap_operator(operator: Callable[..., Any], read: Callable[..., "Read"]) -> Callable[..., Any]:
    def native(*args: Any, **named: Any) -> Any:
        scope = current_scope()
        place = None if scope is None else place_of(sys._getframe(1))
        if scope is None or place is None:
            return operator(*args, **named)
        attention = getattr(place.module, "self_attn", place.module)  # the layer's operator computes its attention too
        place = place._replace(module=attention)
        owners = scope.owners(attention)
        if not owners:
            return operator(*args, **named)
        with paused(scope), torch.no_grad():
            found = operator(*args, **named)
            try:
                call, rest = read(place, *args, **named)
                compare_whole(call, rest(), found[0] if isinstance(found, tuple) else found, args[0])
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                for listener in owners:
                    listener.refuse(place, f"torch's native operator could not be read: {error}")
                return found
            found = continue_from_edit(scope, owners, call, rest, found)
            tell_listeners(owners, call)
            follow_inside(owners, call, rest, found)
        return found

    return native


Read = tuple[Call, Callable[[], Tensor]]


def continue_from_edit(
    scope: ListenerScope, owners: list[Any], call: Call, rest: Callable[[], Tensor], found: Any
) -> Any:
    """What the operator gave; where its mix was edited, what its other parts make of that instead."""
    mine = call.mix
    assert mine is not None
    call.raw_mix, call.to_bhqe = mine, lambda x: x
    call.mix = apply_changes(scope, owners, call, mine, lambda x: x)
    if call.mix is mine:
        return found
    first = found[0] if isinstance(found, tuple) else found
    made = rest()
    if first.is_nested:
        real = pad_nested(first)[1]
        assert real is not None
        made = torch._nested_tensor_from_mask(made[:, : real.shape[1]], real, mask_check=False)
    call.mix = clear_padding(call.to_bhqe(call.raw_mix), call)
    return (made, *found[1:]) if isinstance(found, tuple) else made


def follow_inside(owners: list[Any], call: Call, rest: Callable[[], Tensor], found: Any) -> None:
    """Whoever notes what tensors are made of is shown what the operator does inside, computed again step by step."""
    out = found[0] if isinstance(found, tuple) else found
    for listener in owners:
        follow = getattr(listener, "follow_native", None)
        if follow is not None and not out.is_nested and not call.doubts:
            follow(rest, out)


def compare_whole(call: Call, made: Tensor, found: Tensor, given: Tensor) -> None:
    """Note whether the whole operator, computed again from our q, k and v, gives what it gave."""
    note = "q and k were made again from the arguments of torch's native fast path"
    whole, real = pad_nested(found) if found.is_nested else (found, None)
    if given.is_nested and real is not None:
        made, whole = made[:, : whole.shape[1]][real], whole[real]
    off = float((made - whole).abs().max()) if whole.numel() else 0.0
    slack = 1e-4 * max(1.0, float(whole.abs().max()) if whole.numel() else 0.0)
    if off <= slack:
        call.notes.append(note)
    else:
        call.doubts.append(f"{note}, but then its output is off by {off:.1e}")


def project(x: Tensor, weight: Tensor, bias: Tensor | None, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    made = F.linear(x, weight, bias).unflatten(-1, (3, heads, -1))  # b n 3 h d
    q, k, v = made.permute(2, 0, 3, 1, 4).unbind(0)
    return q, k, v


def pad_nested(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """A nested batch as a rectangle, and which of its places are real."""
    if not x.is_nested:
        return x, None
    lengths = torch.tensor([part.shape[0] for part in x.unbind()], device=x.device)
    whole = torch.nested.to_padded_tensor(x, 0.0)
    return whole, torch.arange(whole.shape[1], device=x.device) < lengths[:, None]


def make_mask(mask: Tensor | None, kind: int | None, real: Tensor | None, heads: int) -> Tensor | None:
    """True where a query may look. The operator hides whatever is not 0 in its mask, also in a float one.

    torch's kinds: 0 is a (q, k) mask, 1 a padding mask, 2 one of all axes.
    """
    seen = None if real is None else real[:, None, None, :]
    if mask is None:
        return seen
    allowed = mask == 0
    if kind == 1:
        allowed = allowed[:, None, None, :]
    elif kind == 0:
        allowed = allowed[None, None]
    elif allowed.ndim == 3:
        allowed = allowed.unflatten(0, (-1, heads))
    return allowed if seen is None else allowed & seen


def make_call(place: CallSite, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, real: Tensor | None) -> Call:
    scale = q.shape[-1] ** -0.5
    mix = F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    call = Call(place, "fast path", q=q, k=k, v=v, scale=scale, mask=mask, mix=mix, raw=(mask, False, scale))
    if real is not None and not bool(real.all()):
        call.rows = real  # the kernel packs what is real, and computes nothing for padding
        call.mark(LayerState.PADDING_ROWS_SKIPPED)
        call.mix = clear_padding(mix, call)
    return call


def clear_padding(mix: Tensor, call: Call) -> Tensor:
    """(b, h, q, e) without rows that were never computed."""
    return mix if call.rows is None else mix.masked_fill(~call.rows[:, None, :, None], 0.0)


def layer_call(place: CallSite, src: Tensor, embed: int, heads: int, weight: Tensor, bias: Tensor, *rest: Any) -> Read:
    out_weight, out_bias, gelu, first, eps, w1, b1, w2, b2, up, up_bias, down, down_bias, mask, kind = rest
    x, real = pad_nested(src)
    shape = (embed,)
    attended = F.layer_norm(x, shape, w1, b1, eps) if first else x
    call = make_call(place, *project(attended, weight, bias, heads), make_mask(mask, kind, real, heads), real)

    def whole() -> Tensor:
        assert call.mix is not None
        y = x + F.linear(call.mix.transpose(1, 2).flatten(2), out_weight, out_bias)
        y = y if first else F.layer_norm(y, shape, w1, b1, eps)
        hidden = F.linear(F.layer_norm(y, shape, w2, b2, eps) if first else y, up, up_bias)
        y = y + F.linear(F.gelu(hidden) if gelu else F.relu(hidden), down, down_bias)
        return y if first else F.layer_norm(y, shape, w2, b2, eps)

    return call, whole


def heads_call(
    place: CallSite,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed: int,
    heads: int,
    weight: Tensor,
    bias: Tensor,
    *rest: Any,
) -> Read:
    out_weight, out_bias, mask, *_, kind = rest
    x, real = pad_nested(query)
    call = make_call(place, *project(x, weight, bias, heads), make_mask(mask, kind, real, heads), real)

    def whole() -> Tensor:
        assert call.mix is not None
        return F.linear(call.mix.transpose(1, 2).flatten(2), out_weight, out_bias)

    return call, whole
