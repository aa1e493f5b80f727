"""Attention written out by hand: the map is the left operand of the product with v, and the softmax of that call."""

from collections.abc import Callable
from itertools import permutations
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.eager import version
from regard.errors import WatchError
from regard.trace.doors.axes import find_axes, heads_of
from regard.trace.doors.call_site import CallSite, around, modules_near, place_of
from regard.trace.doors.change import apply_changes, tell_listeners
from regard.trace.doors.features import (
    LINEAR,
    attends_across_channels,
    context_seen,
    is_context,
    meets_context,
    mixes_streams,
    shares,
)
from regard.trace.doors.ledger import describe_product, is_same
from regard.trace.doors.scope import Call, Candidate, ListenerScope, current_scope, paused
from regard.trace.doors.second_sum import is_weights, part_that_met, scale_between, sums_again
from regard.trace.doors.surroundings import given_to_call
from regard.trace.record.findings import LayerState


def softmax_seen(scope: ListenerScope, frame: FrameType, out: Tensor) -> None:
    """Remember a softmax until we know whether values follow it."""
    if scope.pending is not None:
        scope.pending.softmaxes.append(out)
        return
    if torch._C._functorch.is_functorch_wrapped_tensor(out) or out.is_meta:
        return
    place = place_of(frame)
    if place is None or not scope.owners(place.module):
        return
    if scope.candidates and scope.candidates[0].place.call is not place.call:
        settle(scope)
    if scope.sums is not None and scope.sums.call is not place.call:
        scope.sums = None  # keys of another call's linear attention
    if mixes_streams(scope, place, tuple(out.shape)):
        return
    candidate = Candidate(place, around(place), out, version(out))
    if all(stand_alone(earlier, candidate) for earlier in scope.candidates):
        scope.candidates.append(candidate)
        return
    for earlier in scope.candidates:
        if earlier.met:  # what was told a moment ago is one of several softmaxes, so it is no whole map
            earlier.met = False
            for listener in scope.owners(place.module):
                listener.retract(place)
    scope.candidates.append(candidate)


def settle(scope: ListenerScope) -> None:
    """A module's call is over: say what was not understood, and forget the rest."""
    candidates, scope.candidates = scope.candidates, []
    scope.ledger.plain = None
    scope.quiet()
    if not candidates or all(candidate.met for candidate in candidates):
        return
    place = candidates[0].place
    if len(candidates) == 1 and not looks_like_attention(candidates[0]):
        return
    shapes = ", ".join(str(tuple(candidate.weights.shape)) for candidate in candidates if not candidate.met)
    why = f"a softmax of shape {shapes} was never multiplied by values, so it was not taken for an attention map"
    if any(candidate.again for candidate in candidates):
        why = (
            f"a softmax of shape {shapes} met values of each query's own only, so its columns are no keys that all "
            "queries share, and there is no map to show"
        )
    if sum(not candidate.met for candidate in candidates) > 1:
        why = f"its call has {len(candidates)} softmaxes, so no single map can be told"
    for listener in scope.owners(place.module):
        listener.refuse(place, why)


def product(
    left: Tensor,
    right: Tensor,
    run: Callable[[], Tensor],
    frame: FrameType,
    *,
    order: tuple[int, ...] | None = None,
    recorded: bool = True,
) -> Tensor:
    """A product, and perhaps the one in which weights meet values.

    `order` are the axes of the outcome that stand for those of `left`, the last for that of `right`; `recorded` says
    whether autograd sees what is done here.
    """
    scope = current_scope()
    if scope is not None and scope.pending is None and is_context(scope, left, right):
        return keep_context(scope, [left, right], run)
    if scope is None or not scope.candidates or scope.pending is not None:
        return run()
    candidate = scope.candidates[-1]
    if is_second_sum(scope, candidate, left, right, frame):
        return run_explained(scope, left, run)
    if candidate.met and not meets_again(scope, candidate, left, right, frame):
        return run()
    if candidate.met:
        return run_explained(scope, left, run)
    if not meets(scope, candidate, left, right):
        return run()
    here = common(place_of(frame), candidate)
    if here is None or shares(candidate.weights, right):  # weights times weights: what met the values comes later
        return run()
    if meets_context(scope, right) or is_sum_of_keys(scope, candidate, right, here):
        candidate.met, scope.sums = True, None
        scope.quiet()
        for listener in scope.owners(here.module):
            listener.refuse(here, LINEAR)
        return run_explained(scope, right, run)
    if any(not earlier.met for earlier in scope.candidates[:-1]):
        return run()  # BigBird has five softmaxes in one call, Nystromformer three: never a guess
    owners = scope.owners(here.module)
    weights, notes, turn = as_used(candidate.weights, left)
    if notes and not scope.ledger.is_activation(left, scope.modules()):
        return run()  # a matrix of the model that has the sizes of the weights
    changed = bool(notes)
    candidate.met, candidate.changed = True, None
    notes += candidate.notes
    if version(candidate.weights) != candidate.version:
        notes = notes or ["the softmax was changed in place before it met the values; the map is what met them"]
    unmerged = left if changed or left.ndim > weights.ndim else weights  # axes may be merged, or cut, between the two
    lead = LeadAxes(tuple(unmerged.shape[:-2]), turn)
    if right.ndim == left.ndim < len(lead.sizes) + 2:
        right = right.expand(*left.shape[:-2], -1, -1)
    v = lead.stand(right)
    axes = find_axes(scope, owners, here, lead.sizes, v)
    if axes is None:
        scope.quiet()
        return run_explained(scope, left, run)
    shape = axes.layout.split
    call = Call(
        here,
        "handwritten",
        v=shape(v, grouped=True),
        weights=shape(weights.reshape(*lead.sizes, *weights.shape[-2:])),
        notes=notes,
    )
    axes.tell(call)
    if attends_across_channels(here, weights, right):
        call.mark(LayerState.CHANNELS)
    if left.data_ptr() != weights.data_ptr():
        call.used = shape(lead.stand(left.detach()))
    call.alive = shape(unmerge(left if notes else candidate.weights, lead.sizes))
    mix = run_explained(scope, None if changed else left, run)
    if changed:
        with paused(scope), torch.no_grad():
            candidate.changed = describe_product(modules_near(here), left, right, mix)
    else:
        scope.quiet()
    ordered = order or tuple(range(mix.ndim))
    if mix.ndim == left.ndim == len(ordered):
        call.raw_mix, call.to_bhqe = mix, lambda x: shape(lead.stand(x.permute(ordered)))
        mine = mix
        mix = apply_changes(
            scope, owners, call, mix, lambda x: back(lead.turn(axes.layout.merge(x, lead.sizes)), left, ordered)
        )
        if mix is not mine and not recorded:
            no_gradient(left, right)
    with paused(scope), torch.no_grad():
        call.mix = None if call.raw_mix is None or call.to_bhqe is None else call.to_bhqe(call.raw_mix.detach())
        tell_listeners(owners, call)
        if candidate.again:
            tell_second_sum(owners, here)
    return mix


def is_sum_of_keys(scope: ListenerScope, candidate: Candidate, values: Tensor, here: CallSite) -> bool:
    """Whether a softmax meets what another product of activations gave: then its columns are features."""
    if not (scope.ledger.scores or scope.ledger.missed):
        return False
    with paused(scope), torch.no_grad():
        return scope.ledger.is_sum_of_keys(values, candidate.weights, modules_near(here))


def meets(scope: ListenerScope, candidate: Candidate, left: Tensor, right: Tensor) -> bool:
    """Whether the weights of a softmax are the left operand of a product with values, or some of their columns are."""
    if fits(candidate.weights, left, right):
        return True
    if left.shape[-1] >= candidate.weights.shape[-1] or left.ndim < 3:
        return False
    with paused(scope), torch.no_grad():
        part = part_that_met(candidate.weights, left)
    if part is None or not fits(part, left, right):
        return False
    more = candidate.weights.shape[-1] - part.shape[-1]
    columns = "one more column" if more == 1 else f"{more} more columns"
    candidate.weights = part
    candidate.notes.append(
        f"its softmax had {columns}, such as a learned sink, that met no values, so a row need not add up to one"
    )
    return True


def is_second_sum(scope: ListenerScope, candidate: Candidate, left: Tensor, right: Tensor, frame: FrameType) -> bool:
    """Whether the weights of a softmax meet values of each query's own here; who listens is told of it."""
    with paused(scope), torch.no_grad():
        if not sums_again(candidate.weights, left, right):
            return False
    here = common(place_of(frame), candidate)
    if here is None:
        return False
    if candidate.met and not candidate.again:
        tell_second_sum(scope.owners(here.module), here)
    candidate.again = True
    return True


def meets_again(scope: ListenerScope, candidate: Candidate, left: Tensor, right: Tensor, frame: FrameType) -> bool:
    """Whether the very weights of a softmax that has met values meet others; who listens is told of it.

    If what met the first values was another matrix of the same sizes, that was not the map: the softmax waits again.
    """
    if not fits(candidate.weights, left, right):
        return False
    with paused(scope), torch.no_grad():
        if not is_same(left, candidate.weights) and as_used(candidate.weights, left)[1]:
            return False
    here = common(place_of(frame), candidate)
    if here is None:
        return False
    owners = scope.owners(here.module)
    if candidate.changed is not None:
        scope.ledger.missed.append(candidate.changed)
        sizes = f"{tuple(candidate.weights.shape)} and {tuple(right.shape)}"
        for listener in owners:
            listener.retract(here)
            listener.miss(here, f"activations of the sizes {sizes} were multiplied between a softmax and its values")
        candidate.met, candidate.changed = False, None
    elif not candidate.again:
        tell_second_sum(owners, here)
        candidate.again = True
    return True


def tell_second_sum(owners: list[Any], place: CallSite) -> None:
    for listener in owners:
        listener.sum_again(place)


def run_explained(scope: ListenerScope, made: Tensor | None, run: Callable[[], Tensor]) -> Tensor:
    """A product that was told of or refused: nothing in it is told again, nor the product that `made` came of."""
    with paused(scope):
        out = run()
    if made is not None:
        scope.ledger.take(made)
    return out


def keep_context(scope: ListenerScope | None, operands: list[Tensor], run: Callable[[], Tensor]) -> Tensor:
    """A product, remembered where it sums the keys of linear attention over all positions."""
    out = run()
    if scope is not None and scope.pending is None and is_context(scope, *operands):
        context_seen(scope, out)
    return out


def unmerge(x: Tensor, lead: tuple[int, ...]) -> Tensor:
    """`x` with these axes before its last two, where it has fewer that hold as much."""
    return x if x.ndim == len(lead) + 2 else x.reshape(*lead, *x.shape[-2:])


class LeadAxes(NamedTuple):
    """The axes of a softmax before its last two, and in which order they stand where it meets values."""

    sizes: tuple[int, ...]
    order: tuple[int, ...] | None = None  # None: as they were

    def stand(self, x: Tensor) -> Tensor:
        """What is at the product, with the axes of the softmax."""
        if self.order is None:
            return unmerge(x, self.sizes)
        count = len(self.sizes)
        undo = sorted(range(count), key=self.order.__getitem__)
        return unmerge(x, tuple(self.sizes[i] for i in self.order)).permute(*undo, count, count + 1)

    def turn(self, x: Tensor) -> Tensor:
        """What has the axes of the softmax, in the order of the product."""
        return x if self.order is None else x.permute(*self.order, x.ndim - 2, x.ndim - 1)


def back(mix: Tensor, left: Tensor, order: tuple[int, ...]) -> Tensor:
    """A mix with the leading axes of the softmax, or of what met the values, with the axes that the product gave."""
    undo = sorted(range(len(order)), key=order.__getitem__)
    return mix.reshape(*left.shape[:-1], mix.shape[-1]).permute(undo)


def no_gradient(*operands: Tensor) -> None:
    """The product was edited below autograd, which will not know: a gradient through it would be that of another."""

    def refuse(gradient: Tensor) -> None:
        raise WatchError(
            "attention written with torch.bmm was edited, and torch computes the gradient of bmm as if it was not; "
            "write it with matmul, or run the edited model under torch.no_grad()"
        )

    for x in operands:
        if x.requires_grad:
            x.register_hook(refuse)


def stand_alone(earlier: Candidate, candidate: Candidate) -> bool:
    """Whether two softmaxes in one call of a module are maps of their own, as in a loop over heads.

    The first has met its values before the second was made, and both are of all positions, as many as the module was
    given: what is one of several parts or factors of a map is not.
    """
    if not earlier.met or earlier.weights.shape != candidate.weights.shape:
        return False
    positions = {size for x in given_to_call(candidate.place) for size in positions_in(x, candidate.weights)}
    return positions.issuperset(candidate.weights.shape[-2:])


def positions_in(x: Tensor, weights: Tensor) -> list[int]:
    """The sizes of `x`, (b, n, m) or (n, b, m), without its channels and the axis that may be the batch of weights.

    Ids have no channels, and those of a picture, (b, c, rows, columns) or (b, rows, columns, c), may stand on any axis.
    """
    if x.is_floating_point() and x.ndim == 4:
        return [x.shape[2] * x.shape[3], x.shape[1] * x.shape[2]]
    sizes = list(x.shape[:-1] if x.is_floating_point() else x.shape)
    batch = next((at for at, size in enumerate(sizes) if size and weights.shape[0] % size == 0), None)
    return sizes if batch is None else sizes[:batch] + sizes[batch + 1 :]


def common(here: CallSite | None, candidate: Candidate) -> CallSite | None:
    """The module call in which both the softmax and this product stand; None where there is none near."""
    if here is None or here.call is candidate.place.call:
        return here
    near = (here, around(here))
    for place in (candidate.place, candidate.outer):
        if place is not None and any(one is not None and one.call is place.call for one in near):
            return place
    return None


def looks_like_attention(candidate: Candidate) -> bool:
    """Whether an unexplained softmax is worth a word: routers and classifiers have one too, without heads."""
    return candidate.weights.ndim >= 4 or is_attention(candidate.place)


def is_attention(place: CallSite) -> bool:
    """Whether a module says of itself that it attends: it has heads, or is called so."""
    return heads_of(place.module) is not None or "att" in type(place.module).__name__.lower()


def is_awaited(scope: ListenerScope | None, weights: Tensor) -> bool:
    """Whether a softmax was seen whose weights, or some columns of it, this may be."""
    if scope is None or not scope.candidates or weights.ndim < 3 or scope.candidates[-1].met:
        return False
    q, k = scope.candidates[-1].weights.shape[-2:]
    return weights.shape[-2] == q and weights.shape[-1] <= k


def fits(weights: Tensor, left: Tensor, right: Tensor) -> bool:
    """Whether one operand has the sizes of these weights, and the other those of values."""
    if left.ndim < 3 or left.ndim != right.ndim or left.shape[-2:] != weights.shape[-2:]:
        return False
    return left.numel() == weights.numel() and right.shape[-2] == left.shape[-1]


def as_used(softmax: Tensor, left: Tensor) -> tuple[Tensor, list[str], tuple[int, ...] | None]:
    """The map: softmax's own output where the left operand is that, or that after dropout; else the operand itself.

    Its leading axes may have changed places on the way: then their order is the third.
    """
    alike = left.ndim != softmax.ndim or (left.shape, left.stride()) == (softmax.shape, softmax.stride())
    if left.data_ptr() == softmax.data_ptr() and alike:
        return softmax.detach(), [], None
    if scale_between(softmax, left.reshape(softmax.shape)) is not None:
        return softmax.detach(), [], None
    count = softmax.ndim - 2
    for order in permutations(range(count)) if 1 < count < 5 and left.ndim <= softmax.ndim else ():
        lead = LeadAxes(tuple(softmax.shape[:-2]), order)
        if left.ndim == softmax.ndim and tuple(left.shape[:-2]) != tuple(lead.sizes[i] for i in order):
            continue
        if is_weights(softmax, lead.stand(left)):
            return softmax.detach(), [], order
    return left.detach(), ["the softmax was changed before it met the values; the map is what met them"], None
