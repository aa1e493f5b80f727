"""Our own door: every call of `attend` tells of itself, with a map that knows score, normaliser, bias and dropout."""

import sys
from typing import Any

import torch
from torch import Tensor

from regard.attention.axes.as_4d import as_4d
from regard.trace.doors.call_site import place_of
from regard.trace.doors.change import apply_changes, tell_listeners
from regard.trace.doors.dispatcher import why_unreadable
from regard.trace.doors.scope import Call, current_scope, paused


def announce_attend(found: Any, v: Tensor) -> Any:
    """Hear one call of `attend`; an editor may put another mix in its place."""
    scope = current_scope()
    place = None if scope is None else place_of(sys._getframe(2))
    owners = [] if scope is None or place is None else scope.owners(place.module)
    if scope is None or place is None or not owners:
        return found
    mix, weights = found.mix, found.weights
    why_not = why_unreadable(mix, v)
    if why_not:
        for listener in owners:
            listener.refuse(place, why_not)
        return found
    computed = weights.source.computed
    call = Call(place, "attend", v=as_bhnd(v), map=weights)
    if computed is not None:
        call.q, call.k = as_bhnd(computed.q), as_bhnd(computed.k)
        call.scale, call.softcap = computed.scale, computed.softcap
    call.dropout = weights.dropped.p if weights.dropped is not None else 0.0
    call.raw_mix, call.to_bhqe = mix, as_bhnd
    mix = apply_changes(scope, owners, call, mix, lambda x: x)
    with paused(scope), torch.no_grad():
        call.mix = call.to_bhqe(call.raw_mix.detach())
        tell_listeners(owners, call)
    return found._replace(mix=mix, weights=weights if call.editing is None else call.editing.map(weights))


def as_bhnd(x: Tensor) -> Tensor:
    """(b, h, n, d); unlike torch's kernel, `attend` takes three axes for (h, n, d)."""
    return as_4d(x, heads=x.shape[0])
