"""What looks like a map and is none: a softmax over features, and a mixer of parallel streams.

The columns of a map are positions. Linear attention takes a softmax over the features of its queries and another over
the positions of its keys; the keys meet the values first, and no q × k matrix is ever formed. A model that keeps
several residual streams mixes them at every position by a small matrix whose rows are softmaxes, too.
"""

from dataclasses import dataclass, field
from types import FrameType

from torch import Tensor

from regard.trace.doors.call_site import CALL, CallSite, first_argument, place_of
from regard.trace.doors.scope import ListenerScope
from regard.trace.doors.surroundings import tensors_in

LINEAR = (
    "its softmax runs over the features of its queries, and what it is multiplied by was summed over all positions "
    "before: no q × k matrix is formed, so there is no map to show"
)


@dataclass(eq=False)
class FeatureSums:
    """`FeatureSums` are the products, in one call of a module, of keys that got a softmax over positions."""

    call: FrameType
    keys: list[Tensor] = field(default_factory=list)
    contexts: list[Tensor] = field(default_factory=list)  # what came of them: (…, d, e)


def keys_seen(scope: ListenerScope, frame: FrameType, out: Tensor) -> bool:
    """Remember a softmax over the axis before the last: of keys in linear attention. Says whether it is ours."""
    place = place_of(frame)
    if scope.pending is not None or place is None or not scope.owners(place.module):
        return False
    sums = scope.sums
    if not isinstance(sums, FeatureSums) or sums.call is not place.call:
        sums = scope.sums = FeatureSums(place.call)
    sums.keys.append(out.detach())
    return True


def is_context(scope: ListenerScope, *operands: Tensor) -> bool:
    """Whether this product sums such keys over positions; its outcome is to be given to `context_seen`."""
    sums = scope.sums
    if not isinstance(sums, FeatureSums):
        return False
    return any(shares(x, known) for x in operands for known in sums.keys) or (
        not sums.contexts and any(x.shape[-2:] == known.mT.shape[-2:] for x in operands[:1] for known in sums.keys)
    )


def context_seen(scope: ListenerScope, out: Tensor) -> None:
    """Remember what such a product gave."""
    if isinstance(scope.sums, FeatureSums):
        scope.sums.contexts.append(out.detach())


def meets_context(scope: ListenerScope, values: Tensor) -> bool:
    """Whether what a softmax is multiplied by is such a sum, perhaps scaled since."""
    sums = scope.sums
    if not isinstance(sums, FeatureSums):
        return False
    return any(shares(values, known) or values.shape[-2:] == known.shape[-2:] for known in sums.contexts)


def shares(x: Tensor, other: Tensor) -> bool:
    """Whether both lie in one storage."""
    return x.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def attends_across_channels(place: CallSite, weights: Tensor, values: Tensor) -> bool:
    """Whether a square map, (…, d, d), meets values whose positions stand last, (…, d, n): as in XCiT."""
    code = place.method.f_code
    given = place.here.get(code.co_varnames[1]) if code.co_argcount > 1 else None
    if not isinstance(given, Tensor) or given.ndim != 3 or weights.shape[-1] != weights.shape[-2]:
        return False
    return values.shape[-1] == given.shape[1] != weights.shape[-1]


def mixes_streams(scope: ListenerScope, place: CallSite, shape: tuple[int, ...]) -> bool:
    """Whether a softmax (b, n, s, s) has one small matrix for each position of the text that the model was given."""
    if len(shape) != 4 or shape[-1] != shape[-2] or shape[1] == shape[-1]:
        return False
    key = (id(place.module), place.method.f_code, shape)
    if key not in scope.axes:
        scope.axes[key] = any(tuple(x.shape[:2]) == shape[:2] for x in outermost_texts(scope, place))
    return bool(scope.axes[key])


def weighs_streams(scope: ListenerScope, place: CallSite, weights: Tensor) -> bool:
    """Whether square matrices (b · n, s, s), batched as `bmm` has them, are one for each position of such a text."""
    cells, rows, columns = weights.shape
    if rows != columns:
        return False
    key = (id(place.module), place.method.f_code, weights.shape)
    if key not in scope.axes:
        texts = (x.shape[:2] for x in outermost_texts(scope, place))
        scope.axes[key] = any(b * n == cells and n != rows for b, n in texts)
    return bool(scope.axes[key])


def outermost_texts(scope: ListenerScope, place: CallSite) -> list[Tensor]:
    """Token ids, (b, n), or embeddings, (b, n, m), that the outermost watched module was given."""
    frame: FrameType | None = place.call
    outer = None
    while frame is not None:
        if frame.f_code is CALL and scope.owners(first_argument(frame)):  # type: ignore[arg-type]
            outer = frame
        frame = frame.f_back
    if outer is None:
        return []
    given = tensors_in([outer.f_locals.get("args"), outer.f_locals.get("kwargs")])
    return [x for x in given if x.ndim == (3 if x.is_floating_point() else 2)]
