"""Products of activations: those that are attention without a softmax over rows are heard, or missed by name."""

from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor, nn

from regard.trace.doors.axes import find_axes
from regard.trace.doors.call_site import CallSite, around, first_argument, is_mapped, modules_near, place_of
from regard.trace.doors.change import apply_changes, tell_listeners
from regard.trace.doors.einsum_axes import ProductAxes, matmul_axes
from regard.trace.doors.features import is_context, weighs_streams
from regard.trace.doors.handwritten import no_gradient, run_explained, unmerge
from regard.trace.doors.ledger import describe_product, is_normalised, is_same, mark_of
from regard.trace.doors.scope import Call, ListenerScope, current_scope, paused
from regard.trace.doors.surroundings import surroundings_of

OURS = "regard.attention"  # our own mechanism announces itself
MIXTURES = ("moe", "expert", "router")  # what a router weighs is no position
JAGGED = "torch's attention function ran on nested (jagged) tensors"
PLAIN = (Tensor, nn.Parameter)
Run = Callable[[], Tensor]


def product(
    left: Tensor,
    right: Tensor,
    run: Run,
    frame: FrameType,
    *,
    axes: ProductAxes | None = None,
    batched: bool = False,
) -> Tensor:
    """Compute a product that no softmax waits for; `batched` says that it is `bmm` itself, below autograd."""
    scope = current_scope()
    if scope is None or scope.pending is not None or torch._C._current_graph_task_id() != -1:
        return run()
    if is_jagged(frame):  # inference tensors know no key of autograd
        miss(scope, frame, JAGGED)
        with paused(scope):
            return run()
    ledger = scope.ledger
    if axes is None and left.ndim == right.ndim >= 2 and left.shape[:-2] == right.shape[:-2]:
        axes = matmul_axes(left.ndim)
    if axes is not None and not ledger.inside and (ledger.scores or ledger.softmaxes) and left.ndim < 5:
        place = site_of(frame)  # of five axes, which are batch and heads is not known
        meeting = None if place is None else find_meeting(scope, left, right, axes, frame, modules_near(place))
        if meeting is not None and place is not None and scope.owners(place.module):
            return hear_meeting(scope, meeting, run, place, recorded=not batched)
    if batched:
        out = run()
        judge(scope, left, right, out, frame)
        return out
    ledger.inside += axes is not None
    try:
        out = run()
    finally:
        ledger.inside -= axes is not None
    above = scope.above and left.is_inference() and left.ndim > 2  # nothing is heard below
    if above and axes is not None and not ledger.inside:
        operands = (left.permute(axes.left), right.permute(axes.right), out.permute(axes.out))
        a, b, product_of_both = (x.flatten(0, -3) for x in operands)
        judge(scope, a, b, product_of_both, frame)
    return out


def is_jagged(frame: FrameType) -> bool:
    """Whether torch's own code for jagged tensors is calling."""
    near: FrameType | None = frame
    for _ in range(3):  # a checker of types may stand between
        if near is not None and str(near.f_globals.get("__name__", "")).startswith("torch.nested"):
            return True
        near = None if near is None else near.f_back
    return False


@dataclass(frozen=True, eq=False)
class Meeting:
    """Weights that meet values: (…, q, k) and (…, k, e), and the axes of the outcome in the order (…, q, e)."""

    weights: Tensor
    values: Tensor
    axes: tuple[int, ...]
    used: Tensor | None = None  # the weights after dropout


def find_meeting(
    scope: ListenerScope, left: Tensor, right: Tensor, axes: ProductAxes, frame: FrameType, near: tuple[int, ...]
) -> Meeting | None:
    """Which operand are the weights that a product in the modules `near`, or a softmax, has led to."""
    ledger = scope.ledger
    if is_same(left, right):
        return None
    if left.ndim == 2:
        return find_plain_meeting(scope, left, right, frame)
    for weights, values, way in ((left, right, axes), (right, left, axes.transpose())):
        w, v = weights.permute(way.left), values.permute(way.right)
        of_scores = ledger.fitting(w, near)
        if not of_scores and (weights is right or w.shape[-2] > 1 or not ledger.is_softmax(weights)):
            continue  # rows that no product of queries and keys has led to may be features, as in linear attention
        awaited = any(is_same(weights, one.weights) for one in scope.candidates if not one.met)
        with paused(scope), torch.no_grad():
            if not awaited and not is_normalised(w.detach()) and not (of_scores and ledger.is_sigmoid(weights)):
                continue
        if has_other_softmaxes(scope, weights, frame) or is_mapped(frame):
            return None
        return Meeting(w, v, way.out)
    return None


def find_plain_meeting(scope: ListenerScope, left: Tensor, right: Tensor, frame: FrameType) -> Meeting | None:
    """Weights (q, k) that meet values (k, e), of one text and one head: a softmax over as many keys as positions.

    Nothing is known of how such weights were made, because every linear layer computes such products.
    """
    with paused(scope), torch.no_grad():
        known = scope.ledger.plain_softmax(left)
        if known is None or is_mapped(frame) or not scope.ledger.is_activation(right, scope.modules()):
            return None
    place = site_of(frame)
    if place is None or left.shape[1] not in positions_around(scope, place):
        return None
    return Meeting(known, right, (0, 1), None if is_same(known, left) else left)


def positions_around(scope: ListenerScope, place: CallSite) -> set[int]:
    """The sizes of what a module and those around it were given, without its channels."""
    around_it = surroundings_of(place, lambda module: bool(scope.owners(module)))
    return {size for one in around_it for x in one.given if x.is_floating_point() for size in x.shape[:-1]}


def has_other_softmaxes(scope: ListenerScope, weights: Tensor, frame: FrameType) -> bool:
    """Whether this call has softmaxes besides: which of them is the map would be a guess."""
    others = [one for one in scope.candidates if not one.met and not is_same(one.weights, weights)]
    here = place_of(frame) if others else None
    return here is not None and any(one.place.call is here.call for one in others)


def hear_meeting(scope: ListenerScope, found: Meeting, run: Run, place: CallSite, *, recorded: bool) -> Tensor:
    """Tell of weights that meet values, as `handwritten.product` does of a softmax over rows."""
    weights, owners = found.weights, scope.owners(place.module)
    lead = tuple(weights.shape[:-2])
    v = unmerge(found.values, lead)
    axes = find_axes(scope, owners, place, lead, v)
    if axes is None:
        scope.quiet()
        return run_explained(scope, weights, run)
    split = axes.layout.split
    call = Call(place, "handwritten", v=split(v, grouped=True), weights=split(weights.detach()))
    axes.tell(call)
    call.alive = split(weights)
    call.used = None if found.used is None else split(found.used.detach())
    if scope.ledger.is_sigmoid(weights):
        call.notes.append("its weights come from a sigmoid, so a row need not add up to one")
    scope.ledger.heard, scope.ledger.plain = weights.detach(), None
    for candidate in scope.candidates:
        candidate.met = candidate.met or is_same(candidate.weights, weights)
    mix = run_explained(scope, weights, run)
    scope.quiet()
    mine, shape = mix, mix.permute(found.axes).shape
    undo = sorted(range(mix.ndim), key=found.axes.__getitem__)
    call.raw_mix, call.to_bhqe = mix, lambda x: split(unmerge(x.permute(found.axes), lead))
    mix = apply_changes(scope, owners, call, mix, lambda x: axes.layout.merge(x, lead).reshape(shape).permute(undo))
    if mix is not mine and not recorded:
        no_gradient(weights, found.values)
    with paused(scope), torch.no_grad():
        call.mix = call.to_bhqe(call.raw_mix.detach())
        tell_listeners(owners, call)
    return mix


def judge(scope: ListenerScope, left: Tensor, right: Tensor, out: Tensor, frame: FrameType) -> None:
    """After a batched product that nobody heard: was it attention, and who has missed it?"""
    ledger = scope.ledger
    if left.shape[-1] < 2 or not left.numel() or not right.numel():
        return
    if left.is_meta or not out.is_floating_point() or type(left) not in PLAIN or type(right) not in PLAIN:
        return
    modules = scope.modules()
    if not ledger.is_activation(left, modules) or not ledger.is_activation(right, modules):
        return
    place = owned_site(scope, frame)
    if place is None:
        return
    near = modules_near(place)
    with paused(scope), torch.no_grad():
        # Numbers times themselves may be weights twice: these have yet to meet values.
        what = "" if is_same(left, right) else describe_attention(scope, left, right, near, place)
        made = describe_product(near, left, right, out)
    (ledger.missed if what else ledger.scores).append(made)
    if what:
        tell_missed(scope, place, what, frame)


def miss(scope: ListenerScope, frame: FrameType, what: str) -> None:
    """Something in a watched module computed attention that is not heard."""
    place = owned_site(scope, frame)
    if place is not None:
        tell_missed(scope, place, what, frame)


def tell_missed(scope: ListenerScope, place: CallSite, what: str, frame: FrameType) -> None:
    for listener in scope.owners(place.module):
        listener.miss(place, f"{what}, inside torch.vmap (torch.func)" if is_mapped(frame) else what)


def owned_site(scope: ListenerScope, frame: FrameType) -> CallSite | None:
    """The innermost module around a product that is watched: it may call one that it never registered."""
    place = site_of(frame)
    while place is not None and not scope.owners(place.module):
        place = around(place)
    return place


def describe_attention(
    scope: ListenerScope, left: Tensor, right: Tensor, near: tuple[int, ...], place: CallSite
) -> str:
    """What an unexplained product of activations looks like; empty where it is not like attention."""
    ledger = scope.ledger
    mixture = any(word in type(place.module).__name__.lower() for word in MIXTURES)
    for weights, values in ((left, right), (right.mT, left.mT)):
        if weights is not left and weights.shape[-2] == 1:
            continue  # one row for each of many windows: a convolution with a kernel of its own at each place
        shapes = f"{tuple(weights.shape)} and {tuple(values.shape)}"
        if is_explained(scope, weights):
            return ""
        if not mixture and is_normalised(weights):
            taken = ledger.take(weights, near)
            if is_context(scope, left, right):
                return (
                    f"keys with a softmax over positions were multiplied by values, {shapes}, as linear attention does"
                )
            if taken is None and weighs_streams(scope, place, weights):
                return ""
            return f"weights and values, {shapes}, were multiplied, and how the weights were made was not seen"
    for weights, values in ((left, right), (right, left)):
        scores = ledger.take(weights, near)
        if scores is None or (weights is right and values.shape[-2] == 1):
            continue  # one row that weighs the rows of scores: an indexer adds up its heads so
        shapes = f"{tuple(weights.shape)} and {tuple(values.shape)}"
        straight = scores.mark == mark_of(weights)
        if straight and scores.square:
            continue  # a chain of square matrices
        if straight:
            return f"a product of activations was multiplied again, {shapes}, as linear attention does"
        return f"queries × keys and then values were multiplied, {shapes}, with something else than a softmax between"
    return ""


def is_explained(scope: ListenerScope, weights: Tensor) -> bool:
    """Whether these weights were heard already, and meet other values now."""
    met = [one.weights for one in scope.candidates if one.met]
    heard = scope.ledger.heard
    return any(is_same(weights, one) for one in (met if heard is None else [*met, heard]))


def site_of(frame: FrameType) -> CallSite | None:
    """The module that makes a product; None where our own mechanism does, which announces itself."""
    near: FrameType | None = frame
    while near is not None and not isinstance(first_argument(near), nn.Module):
        if str(near.f_globals.get("__name__", "")).startswith(OURS):
            return None
        near = near.f_back
    return place_of(near)
