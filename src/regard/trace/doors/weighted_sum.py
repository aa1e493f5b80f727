"""Attention written as a weighted sum: `(w[..., None] * v).sum(-2)`, without a product of matrices.

It is noticed at the sum, and missed by name: a kernel of ours in front of every multiplication would be handed plain
numbers where torch knows them for numbers that do not decide a dtype, and could not hand them on as such.
"""

from types import FrameType
from typing import Any

from torch import Tensor

from regard.trace.doors.below import Run
from regard.trace.doors.call_site import modules_near
from regard.trace.doors.handwritten import is_attention
from regard.trace.doors.products import MIXTURES, miss, site_of
from regard.trace.doors.scope import ListenerScope, current_scope
from regard.trace.doors.surroundings import given_to_call


def hear_sum(run: Run, frame: FrameType, args: tuple[Any, ...]) -> Any:
    """Values that were weighed are added up over the keys."""
    out = run()
    scope = current_scope()
    x: Tensor = args[0]
    if scope is None or scope.pending is not None or x.ndim < 3 or x.shape[-1] < 2 or x.shape[-2] < 2:
        return out
    dims = [args[1]] if isinstance(args[1], int) else list(args[1] or ())
    if [dim % x.ndim for dim in dims] == [x.ndim - 2] and was_weighed(scope, x, frame):
        miss(scope, frame, f"values were weighed and added up, {tuple(x.shape)}, without a product of matrices")
    return out


def was_weighed(scope: ListenerScope, x: Tensor, frame: FrameType) -> bool:
    """Whether this is as large as the weights of a softmax, or as a product of activations, times values."""
    shape = tuple(x.shape[:-1])
    sizes = [(tuple(one.weights.shape), id(one.place.module)) for one in scope.candidates if not one.met]
    alike = {module for size, module in (*sizes, *scope.ledger.weighing) if size in (shape, (*shape, 1))}
    if not alike and not scope.ledger.fitting(x[..., 0]):
        return False
    place = site_of(frame)
    made = place is not None and not alike.isdisjoint(modules_near(place))
    if place is None or any(word in type(place.module).__name__.lower() for word in MIXTURES):
        return False
    if made:  # experts, layers and branches are mixed by the like of a softmax over two axes
        texts = (x.shape[:2] for x in given_to_call(place) if x.ndim == 3 and x.is_floating_point())
        return len(shape) > 2 or is_attention(place) or any(text == x.shape[:2] for text in texts)
    return scope.ledger.take(x[..., 0], modules_near(place)) is not None
