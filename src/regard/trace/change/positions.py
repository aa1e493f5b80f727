"""At which positions of the whole text the queries and keys of one call stand: under a cache they come later."""

from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.axes.as_4d import broadcast_4d
from regard.attention.mask import Sizes
from regard.trace.doors.call_site import CACHES, CallSite, first_argument, kind_of
from regard.trace.doors.scope import Call


class CallPositions(NamedTuple):
    """Positions, counted from the first token that was ever fed."""

    first: int  # of the first query
    queries: int  # how many queries were fed so far, those of this call included
    keys: Tensor  # k: of every key; −1 for empty room
    length: int  # how many positions keys have


def find_positions(call: Call) -> CallPositions:
    """Where a call stands. What its cache says counts; without one, the last query stands at the last key it sees."""
    q, k = call.lengths
    kind = kind_of(call.place, q, k, call.causal)
    cache = cache_of(call.place) if kind.cached else None
    fed = fed_of(cache, call.place)
    if kind.name != "self":
        first = 0 if fed is None or fed < q else fed - q
        return CallPositions(first, first + q, torch.arange(k), k)
    count = k if call.causal or q >= k else count_visible(call, q, k)
    length = max(count, q if fed is None else fed)
    keys = torch.arange(k) + length - count
    kept = min(getattr(cache, "keep_first", 0), k)
    keys[:kept] = torch.arange(kept)
    first = 0 if call.causal and fed is None else length - q
    return CallPositions(first, first + q, keys.masked_fill(keys >= length, -1), length)


def count_visible(call: Call, q: int, k: int) -> int:
    """Up to how many keys the last query sees: a static cache has empty room behind them, which its mask hides."""
    if call.map is not None:
        source = call.map.source
        seen = source.allowed(torch.tensor([q - 1], device=source.device))
    else:
        mask = None if call.mask is None else broadcast_4d(call.mask, Sizes((1, 1), q, k))[..., -1:, :k]
        floating = mask is not None and mask.dtype != torch.bool
        seen = mask > torch.finfo(mask.dtype).min / 2 if mask is not None and floating else mask
    if seen is None or seen.shape[-1] != k:
        return k
    some = seen.reshape(-1, k).any(0).nonzero()
    return int(some[-1]) + 1 if len(some) else k


def cache_of(place: CallSite) -> Any:
    """The cache that a module was handed."""
    frame: FrameType | None = place.method
    while frame is not None:
        if first_argument(frame) is place.module:
            found = next((frame.f_locals[word] for word in CACHES if frame.f_locals.get(word) is not None), None)
            if found is not None:
                return found
        if frame is place.call:
            return None
        frame = frame.f_back
    return None


def fed_of(cache: Any, place: CallSite) -> int | None:
    """How many tokens a cache has seen; None where it does not say."""
    seen = getattr(cache, "seen", None)
    if isinstance(seen, int) and not getattr(cache, "fixed", False):
        return seen
    ask = getattr(cache, "get_seq_length", None)
    layer = getattr(place.module, "layer_idx", 0)
    try:
        return None if ask is None else int(ask(layer if isinstance(layer, int) else 0))
    except (ValueError, TypeError, IndexError, AttributeError, RuntimeError):
        return None
