"""Attention written out by hand: the map is the left operand of the product with v, and the softmax of that call."""

from collections.abc import Callable
from types import FrameType

import torch
from torch import Tensor

from regard.trace.doors.place import Place, place_of
from regard.trace.doors.scene import Call, Candidate, Scene, deaf, scene_now

HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "num_head")


def softmax_seen(scene: Scene, frame: FrameType, out: Tensor) -> None:
    """Remember a softmax until we know whether values follow it."""
    if scene.pending is not None:
        scene.pending.softmaxes.append(out)
        return
    if torch._C._functorch.is_functorch_wrapped_tensor(out) or out.is_meta:
        return
    place = place_of(frame)
    if place is None or not scene.owners(place.module):
        return
    if scene.candidates and scene.candidates[0].place.call is not place.call:
        settle(scene)
    scene.candidates.append(Candidate(place, out))


def settle(scene: Scene) -> None:
    """A module's call is over: say what was not understood, and forget the rest."""
    candidates, scene.candidates = scene.candidates, []
    scene.quiet()
    if not candidates or all(candidate.met for candidate in candidates):
        return
    place = candidates[0].place
    shapes = ", ".join(str(tuple(candidate.weights.shape)) for candidate in candidates if not candidate.met)
    why = f"a softmax of shape {shapes} was never multiplied by values, so it was not taken for an attention map"
    if len(candidates) > 1:
        why = f"its call has {len(candidates)} softmaxes, so no single map can be told"
    for ear in scene.owners(place.module):
        ear.refuse(place, why)


def product(left: Tensor, right: Tensor, run: Callable[..., Tensor], frame: FrameType) -> Tensor:
    """A product, and perhaps the one in which weights meet values."""
    scene = scene_now()
    if scene is None or not scene.candidates or scene.pending is not None:
        return run()
    candidate = scene.candidates[-1]
    if not fits(candidate.weights, left, right) or candidate.met:
        return run()
    here = place_of(frame)
    if here is None or here.call is not candidate.place.call:
        return run()
    if len(scene.candidates) > 1:  # BigBird has five softmaxes in one call, Nystromformer three: never a guess
        return run()
    owners = scene.owners(here.module)
    candidate.met = True
    heads = heads_of(here)
    weights, notes = as_used(candidate.weights, left)
    call = Call(here, "handwritten", v=as_four(right, heads), weights=as_four(weights, heads), notes=notes)
    if left.data_ptr() != weights.data_ptr():
        call.used = as_four(left.detach(), heads)
    mix: Tensor | None = None
    for ear in owners:
        with deaf(scene):
            other = ear.change(call)
        if other is not None:  # an editor gives weights here, because the product itself is the model's
            mix = run(other.reshape(left.shape).to(left.dtype))
            call.notes.append("edited")
    mix = run() if mix is None else mix
    scene.quiet()
    call.grown, call.shaped = mix, lambda x: as_four(x, heads)
    with deaf(scene), torch.no_grad():
        call.mix = as_four(mix.detach(), heads) if mix.ndim == left.ndim else None
        for ear in owners:
            ear.hear(call)
    return mix


def fits(weights: Tensor, left: Tensor, right: Tensor) -> bool:
    if left.ndim < 3 or left.ndim != right.ndim or left.shape[-2:] != weights.shape[-2:]:
        return False
    return left.numel() == weights.numel() and right.shape[-2] == left.shape[-1]


def as_used(softmax: Tensor, left: Tensor) -> tuple[Tensor, list[str]]:
    """The map: softmax's own output where the left operand is that, or that after dropout; else the operand itself."""
    if left.data_ptr() == softmax.data_ptr():
        return softmax.detach(), []
    used, made = left.detach().reshape(softmax.shape).float(), softmax.detach().float()
    kept = used != 0
    if bool(kept.any()):
        ratio = (used / made)[kept]
        if bool((ratio / ratio.median() - 1).abs().max() < 2e-2 if used.dtype != softmax.dtype else 1e-4):
            return softmax.detach(), []
    return left.detach(), ["the softmax was changed before it met the values; the map is what met them"]


def heads_of(place: Place) -> int | None:
    for name in HEADS:
        heads = getattr(place.module, name, None)
        if isinstance(heads, int) and heads > 0:
            return heads
    return None


def as_four(x: Tensor, heads: int | None) -> Tensor:
    """b h … from (b · h, …), where the module says how many heads it has."""
    if x.ndim == 4:
        return x
    if x.ndim > 4:
        return x.flatten(0, -4)
    if x.ndim == 3 and heads is not None and x.shape[0] % heads == 0:
        return x.unflatten(0, (-1, heads))
    return x.unsqueeze(1)


def is_mixing(equation: str) -> bool:
    """Whether an einsum is a batched product: "bhqk,bhke->bhqe" under any letters."""
    equation = equation.replace(" ", "")
    if "->" not in equation or "." in equation.replace("...", ""):
        return False
    given, out = equation.split("->")
    parts = given.split(",")
    if len(parts) != 2:
        return False
    left, right = parts
    return len(left) >= 2 and left[-1] == right[-2:-1] and left[-1] not in out and out[-1:] == right[-1:]
