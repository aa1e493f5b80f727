"""The flex door: `flex_attention` is wrapped under the names by which the model's modules and source files call it."""

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.axes.heads import multiply_grouped
from regard.trace.doors.call_site import place_of
from regard.trace.doors.dispatcher import tell, why_unreadable
from regard.trace.doors.flex_names import HeldName, held_names, unwrap
from regard.trace.doors.rows import SAMPLED, sample_rows
from regard.trace.doors.scope import Call, current_scope, paused
from regard.trace.record.findings import LayerState

LOCK = threading.Lock()
USED: dict[tuple[str, str], int] = {}  # how many watches hold a wrapped name, by its owner


def open_flex(modules: list[nn.Module]) -> Callable[[], None]:
    """Wrap the names under which the model holds it; gives back how to undo it.

    A name is wrapped once, however many watches want it, and restored when the last of them is over.
    """
    library = sys.modules.get("torch.nn.attention.flex_attention")
    if library is None:
        return lambda: None
    taken: list[HeldName] = []
    with LOCK:
        for held in held_names(modules, unwrap(library.flex_attention)):
            key = (held.owner, held.word)
            if held.names[held.word] is unwrap(held.names[held.word]):
                held.names[held.word] = wrap_flex(held.names[held.word])
            USED[key] = USED.get(key, 0) + 1
            taken.append(held)

    def close() -> None:
        with LOCK:
            for names, word, owner in taken:
                USED[owner, word] -= 1
                if not USED[owner, word]:
                    del USED[owner, word]
                    if word in names:  # somebody may have taken the name away meanwhile
                        names[word] = unwrap(names[word])

    return close


def wrap_flex(function: Callable[..., Any]) -> Callable[..., Any]:
    def flex_attention(query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Any:
        scope = current_scope()
        place = None if scope is None else place_of(sys._getframe(1))
        owners = [] if scope is None or place is None else scope.owners(place.module)
        if scope is None or place is None or not owners or scope.pending is not None:  # the registry tells of it
            return function(query, key, value, *args, **named)
        why_not = why_unreadable(query, key)
        if why_not:
            for listener in owners:
                listener.refuse(place, why_not)
            return function(query, key, value, *args, **named)
        given = dict(zip(("score_mod", "block_mask", "scale"), args)) | named
        scale = given.get("scale")
        scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
        call = Call(place, "flex", q=query, k=key, v=value, scale=scale)
        with paused(scope), torch.no_grad():
            call.mask = allowed_by(given.get("block_mask"), query, key)
            if given.get("score_mod") is not None:
                changed_by(given["score_mod"], call, probe(function, query, key, args, named))
        rest: list[Any] = []

        def run() -> Tensor:
            scope.paused += 1
            try:
                found = function(query, key, value, *args, **named)
            finally:
                scope.paused -= 1
            if isinstance(found, tuple):
                rest.extend(found[1:])
                return found[0]
            return found

        mix = tell(scope, owners, call, run, shape=lambda x: x, back=lambda x: x)
        return (mix, *rest) if rest else mix

    flex_attention._regard_hears = function  # type: ignore[attr-defined]
    return flex_attention


def cells(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    b, h, q = query.shape[:3]
    device = query.device
    return (
        torch.arange(b, device=device).view(-1, 1, 1, 1),
        torch.arange(h, device=device).view(1, -1, 1, 1),
        torch.arange(q, device=device).view(1, 1, -1, 1),
        torch.arange(key.shape[2], device=device).view(1, 1, 1, -1),
    )


def each(function: Callable[..., Tensor], *args: Tensor) -> Tensor:
    """The function at every cell, as flex calls it: one number at a time."""
    shape = torch.broadcast_shapes(*(x.shape for x in args))
    flat = [x.expand(shape).reshape(-1) for x in args]
    return torch.vmap(function)(*flat).reshape(shape)


def allowed_by(block_mask: Any, query: Tensor, key: Tensor) -> Tensor | None:
    """Every cell of the mask function, evaluated now: what its closure holds may change later."""
    if block_mask is None or block_mask.mask_mod is None:
        return None
    b, h, q, k = cells(query, key)
    lead = tuple(block_mask.shape[:2])
    b, h = (b if lead[0] > 1 else b[:1]), (h if lead[1] > 1 else h[:, :1])
    return each(block_mask.mask_mod, b, h, q, k)


PROBED = 1024  # keys up to which flex is asked for its whole map, which takes one more call of it


def probe(function: Callable[..., Any], query: Tensor, key: Tensor, args: Any, named: dict[str, Any]) -> Tensor | None:
    """The weights that flex itself makes: what it mixes where values are the rows of an identity."""
    b, g, k = key.shape[:3]
    if k > PROBED:
        return None
    eye = torch.eye(k, dtype=query.dtype, device=query.device).expand(b, g, k, k).contiguous()
    found = function(query, key, eye, *args, **named)
    weights: Tensor = found[0] if isinstance(found, tuple) else found
    return weights


def changed_by(score_mod: Any, call: Call, weights: Tensor | None) -> None:
    """A score function that only adds is a bias, −inf included; any other is kept as the weights it made."""
    assert call.q is not None
    assert call.k is not None
    at = cells(call.q, call.k)
    scores = multiply_grouped(call.q.float() * call.scale, call.k.float().mT)
    made = each(score_mod, scores, *at)
    added = each(score_mod, torch.zeros(1, 1, 1, 1, device=scores.device), *at)
    if torch.allclose(scores + added, made, atol=1e-5, rtol=1e-5):
        call.bias = added
        if weights is None:
            call.mark(LayerState.COMPARED_BY_OUTPUT)
        else:
            call.weights = weights.index_select(2, sample_rows(weights.shape[2], SAMPLED).to(weights.device))
        return
    if weights is None:
        made = made if call.mask is None else made.masked_fill(~call.mask, -torch.inf)
        weights = made.softmax(-1).nan_to_num(0.0)
        call.mark(LayerState.COMPARED_BY_OUTPUT)
    call.weights, call.q = weights, None
    call.notes.append("its score function does more than add, so the weights are stored as it made them")
