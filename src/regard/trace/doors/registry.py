"""The registry door: the one place through which the `transformers` library reaches every attention function.

It gives the module, keys and values before they are repeated for grouped heads, the shared position bias, the cap and
the sinks. The kernel inside only adds what finally arrived there: the mask, the causal flag, the scale.
The library is never imported here; the door opens only if somebody else has.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.axes.heads import multiply_grouped
from regard.trace.doors.call_site import place_of
from regard.trace.doors.dispatcher import tell, why_unreadable
from regard.trace.doors.flex import allowed_by
from regard.trace.doors.rows import SAMPLED, sample_rows
from regard.trace.doors.scope import Call, Pending, current_scope, paused

LIBRARY = "transformers.modeling_utils"


def open_registry() -> Callable[[], None]:
    """Wrap `AttentionInterface.get_interface`; gives back how to undo it."""
    library = sys.modules.get(LIBRARY)
    interface = getattr(library, "AttentionInterface", None)
    if interface is None:
        return lambda: None
    original = interface.__dict__.get("get_interface")
    if original is None:
        return lambda: None

    @wraps(original)
    def get_interface(self: Any, *args: Any, **named: Any) -> Any:
        function = original(self, *args, **named)
        return function if current_scope() is None else wrap_attention(function)

    interface.get_interface = get_interface

    def close() -> None:
        interface.get_interface = original

    return close


def wrap_attention(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same attention function, for one call, with somebody listening."""

    def attention(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Any:
        scope = current_scope()
        owners = [] if scope is None else scope.owners(module)
        if scope is None or not owners or scope.pending is not None:
            return function(module, query, key, value, *args, **named)
        place = place_of(sys._getframe(1))
        assert place is not None  # the caller is a method of the module
        why_not = why_unreadable(query, key)
        if query.ndim != 4 or key.ndim != 4:
            why_not = why_not or f"its q has shape {tuple(query.shape)}, not (b, h, q, d)"
        if why_not:
            for listener in owners:
                listener.refuse(place, why_not)
            return function(module, query, key, value, *args, **named)
        mask = args[0] if args else named.get("attention_mask")
        pending = Pending(module)
        if mask is not None and hasattr(mask, "mask_mod"):  # of cells, for flex; its kernel may be compiled, and unseen
            with paused(scope), torch.no_grad():
                mask, pending.flex = allowed_by(mask, query, key), True
        scale = named.get("scaling")
        call = Call(
            place,
            "registry",
            q=query,
            k=key,
            v=value,
            scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
            mask=mask if isinstance(mask, Tensor) else None,
            bias=named.get("position_bias"),
            softcap=named.get("softcap"),
            sink=sinks_of(module, named),
            dropout=float(named.get("dropout") or 0.0),
        )
        second: list[Any] = []

        def run() -> Tensor:
            scope.pending = pending
            try:
                mix, *rest = function(module, query, key, value, *args, **named)
            finally:
                scope.pending = None
            second.extend(rest)
            with paused(scope):
                conclude(call, pending)
            return mix

        # The registry's functions give b q h e.
        mix = tell(
            scope, owners, call, run, shape=lambda x: as_heads(x, query), back=lambda x: x.transpose(1, 2).contiguous()
        )
        return (mix, *(second or [None]))

    return attention


def as_heads(mix: Tensor, query: Tensor) -> Tensor:
    """b h q e from what the registry's functions give."""
    if mix.ndim == 3:
        mix = mix.unflatten(-1, (query.shape[1], -1))
    return mix.transpose(1, 2)


def sinks_of(module: nn.Module, named: dict[str, Any]) -> Tensor | None:
    found = named.get("s_aux")
    if found is None:  # asking a module for what it lacks takes a while
        own = "sinks" in module._parameters or "sinks" in module._buffers or "sinks" in module.__dict__
        if not own and not hasattr(type(module), "sinks"):
            return None
        found = module.sinks
    return found.reshape(-1) if isinstance(found, Tensor) else None


def conclude(call: Call, pending: Pending) -> None:
    """What the kernel inside received decides; where there was none, the softmax that was seen."""
    assert call.q is not None
    assert call.k is not None
    if len(pending.kernels) == 1 and not pending.softmaxes:
        mask, causal, scale, dropout, keys, dtype = pending.kernels[0]
        if dtype != call.q.dtype:  # autocast, on the way to the kernel
            call.q, call.k = call.q.to(dtype), call.k.to(dtype)
            call.v = None if call.v is None else call.v.to(dtype)
        call.raw, call.dropout = (mask, causal, scale), dropout
        call.causal, call.sink, call.softcap = causal, None, None  # the fused kernel knows neither
        if call.bias is None:
            call.mask = mask
        else:
            call.mask = None if mask is None else hidden_of(mask)
        if keys < call.k.shape[-2]:
            call.k = call.k[..., :keys, :]
            call.v = None if call.v is None else call.v[..., :keys, :]
            call.bias = None if call.bias is None else call.bias[..., :keys]
        if scale is not None:
            call.scale = scale
        return
    if len(pending.softmaxes) == 1:
        confirm(call, pending.softmaxes[0])
        return
    if pending.flex:
        return
    what = f"{len(pending.kernels)} kernels of torch and {len(pending.softmaxes)} softmaxes"
    call.refused = f"{what} ran inside its attention function, not one; use attn_implementation='sdpa' or 'eager'"


def hidden_of(mask: Tensor) -> Tensor:
    """A position bias merged with a mask: what is hidden is the same for all heads."""
    if mask.dtype == torch.bool:
        return mask
    return mask[:, :1] > torch.finfo(mask.dtype).min / 2


def confirm(call: Call, softmax: Tensor) -> None:
    """An eager softmax must be reproduced from q and k on a few rows; otherwise it is kept as it was seen."""
    q, k = call.q, call.k
    assert q is not None
    assert k is not None
    alive, softmax = softmax, softmax.detach()
    extra = softmax.shape[-1] - k.shape[-2]
    fits = softmax.ndim == 4 and softmax.shape[:3] == q.shape[:3] and extra in (0, 1)
    if not fits:
        call.doubts.append(f"the softmax inside has shape {tuple(softmax.shape)}")
        return
    if not extra:
        call.sink = None
    weights = softmax[..., : k.shape[-2]]
    rows = sample_rows(q.shape[-2], SAMPLED)
    with torch.no_grad():
        asked = rows_of(call, rows)
        seen = weights.index_select(-2, rows.to(weights.device)).float()
        slack = 1e-5 if q.dtype == torch.float32 else 3e-2
        if call.sink is None and extra:
            asked = None
        if asked is not None and bool((asked - seen).abs().max() <= slack):
            call.weights = seen  # only the sampled rows: the rest is asked
            call.raw = None
            return
    call.weights, call.q, call.alive = weights, None, alive[..., : k.shape[-2]]
    call.notes.append("its score has more terms than q · k and what was handed over, so the weights are stored as seen")


def rows_of(call: Call, rows: Tensor) -> Tensor | None:
    """Some rows of the map by plain arithmetic, as eager attention writes it."""
    q, k = call.q, call.k
    assert q is not None
    assert k is not None
    rows = rows.to(q.device)
    scores = multiply_grouped(q.index_select(-2, rows).float() * call.scale, k.float().mT)
    if call.softcap is not None:
        scores = call.softcap * torch.tanh(scores / call.softcap)
    try:
        for added in (call.bias, call.mask):
            if added is None:
                continue
            part = added[..., : k.shape[-2]]
            part = part if part.shape[-2] == 1 else part.index_select(-2, rows)
            if part.dtype == torch.bool:
                scores = scores.masked_fill(~part, torch.finfo(torch.float32).min)
            else:
                scores = scores + part.float()
        if call.sink is not None:
            sink = call.sink.float().view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
            return torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
    except (RuntimeError, IndexError):  # shapes that mean something else in this model
        return None
    return scores.softmax(-1)
