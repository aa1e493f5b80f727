"""The kernel door: a Python kernel on the composite operators of torch, there only while somebody listens.

The composite `scaled_dot_product_attention`, `softmax`, `matmul` and `einsum` are reached under any bound name, from
scripted code, inside autocast and inference mode; each kernel here runs torch's own composite kernel, so the same
fused kernel computes the same numbers. `bmm` is no composite: it is intercepted below autograd, one key further down.
They are put there and taken away by `library.py`.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from regard.trace.doors import features, handwritten, products
from regard.trace.doors.axes import find_axes
from regard.trace.doors.below import Hear, Run, kernels_below
from regard.trace.doors.broadcast import find_lead, share_batch
from regard.trace.doors.call_site import CallSite, is_mapped, place_of
from regard.trace.doors.change import apply_changes, tell_listeners
from regard.trace.doors.einsum_axes import mixing_axes, product_axes, spell_out, swap_operands
from regard.trace.doors.elsewhere import notice_thread
from regard.trace.doors.library import Library, backends
from regard.trace.doors.scope import Call, ListenerScope, current_scope, paused
from regard.trace.doors.weighted_sum import hear_sum

ATEN = torch.ops.aten
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
ATTENTION: Callable[..., Tensor] = ATEN.scaled_dot_product_attention.default._op_dk
OURS = "regard.attention"


def is_ours(frame: FrameType) -> bool:
    """Whether this package's own mechanism is calling: it tells of itself, with more than a kernel knows."""
    near: FrameType | None = frame
    for _ in range(3):  # a checker of types may stand between
        if near is None:
            return False
        if str(near.f_globals.get("__name__", "")).startswith(OURS):
            return True
        near = near.f_back
    return False


def attention_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch's own answer; whoever listens is told what went in and what came out."""
    given = (COMPOSITE, query, key, value, attn_mask, dropout_p, is_causal)
    scope = current_scope()
    if scope is None:
        notice_thread(sys._getframe(1), "torch's attention function", (query, key, value))
        return ATTENTION(*given, scale=scale, enable_gqa=enable_gqa)

    def run() -> Tensor:
        scope.paused += 1  # where no fused kernel fits, torch writes it out with softmax and products of its own
        try:
            return ATTENTION(*given, scale=scale, enable_gqa=enable_gqa)
        finally:
            scope.paused -= 1

    frame = sys._getframe(1)
    if is_ours(frame):
        return run()
    if scope.pending is not None:
        scope.pending.kernels.append((attn_mask, is_causal, scale, dropout_p, key.shape[-2], query.dtype))
        return run()
    place = place_of(frame)
    owners = [] if place is None else scope.owners(place.module)
    if place is None or not owners:
        products.miss(
            scope, frame, f"torch's attention function ran in {name_of(place)}, which is no part of the model"
        )
        return run()
    why_not = why_unreadable(query, key)
    if why_not:
        for listener in owners:
            listener.refuse(place, why_not)
        return run()
    lead = () if query.is_nested else find_lead(query, key, value)
    axes = find_axes(scope, owners, place, lead, value, key, query)
    if axes.refused:
        for listener in owners:
            listener.refuse(place, axes.refused)
        return run()
    layout = axes.layout
    mask = attn_mask if attn_mask is None or attn_mask.ndim < 3 else layout.split(attn_mask)
    q, k, v = share_batch(layout.split(query), layout.split(key, grouped=True), layout.split(value, grouped=True))
    call = Call(
        place,
        "kernel",
        q=q,
        k=k,
        v=v,
        scale=query.shape[-1] ** -0.5 if scale is None else scale,
        mask=mask,
        causal=is_causal,
        dropout=dropout_p,
        raw=(mask, is_causal, scale),
    )
    axes.tell(call)
    return tell(scope, owners, call, run, shape=layout.split, back=lambda mix: layout.merge(mix, lead))


def name_of(place: CallSite | None) -> str:
    return "" if place is None else type(place.module).__name__


def tell(
    scope: ListenerScope,
    owners: list[Any],
    call: Call,
    run: Callable[[], Tensor],
    *,
    shape: Callable[[Tensor], Tensor],
    back: Callable[[Tensor], Tensor],
) -> Tensor:
    """Compute, let editors change what came out, and tell every listener.

    `shape` makes the mix b h q e, `back` undoes it.
    """
    if call.dropout and call.q is not None and call.q.device.type == "cpu":
        call.rng = torch.get_rng_state()
    mix = run()
    call.raw_mix, call.to_bhqe = mix, shape
    mix = apply_changes(scope, owners, call, mix, back)
    scope.paused += 1
    try:
        if torch.is_grad_enabled():
            with torch.no_grad():
                call.mix = call.to_bhqe(call.raw_mix.detach())
                tell_listeners(owners, call)
        else:
            call.mix = call.to_bhqe(call.raw_mix)
            tell_listeners(owners, call)
    finally:
        scope.paused -= 1
    return mix


def why_unreadable(*xs: Tensor) -> str:
    """Why the numbers of these tensors cannot be kept; empty where they can."""
    for x in xs:
        if x.is_meta:
            return "its tensors are on the meta device and hold no numbers"
        if torch._C._functorch.is_functorch_wrapped_tensor(x):
            return "a torch.func transform (vmap, grad, …) was running, whose tensors stand for many at once"
        if type(x) is Tensor or type(x) is nn.Parameter:
            continue
        if type(x).__name__ in ("FakeTensor", "FunctionalTensor"):
            return f"its tensors are of type {type(x).__name__} and hold no numbers"
        if type(x).__name__ == "DTensor":
            return "its tensors are split over devices (DTensor); gather them first"
    return ""


def softmax_kernel(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    out: Tensor = ATEN.softmax.int._op_dk(COMPOSITE, self, dim, dtype)
    scope = current_scope()
    if scope is not None and out.ndim >= 3 and dim in (-1, out.ndim - 1) and not out.is_nested:
        frame = sys._getframe(1)
        if is_mapped(frame):
            return out
        if not is_ours(frame):
            handwritten.softmax_seen(scope, frame, out)
            if scope.candidates:
                open_products(scope)
    elif scope is not None and out.ndim >= 2 and not out.is_nested:
        frame = sys._getframe(1)
        place = place_of(frame)
        scope.ledger.remember(out, None if place is None else place.module)
        of_keys = out.ndim >= 3 and dim in (-2, out.ndim - 2) and features.keys_seen(scope, frame, out)
        if of_keys or (place is not None and scope.owners(place.module) and may_weigh_positions(scope, place, out)):
            open_products(scope)
            scope.ledger.plain = out if out.ndim == 2 and dim in (-1, 1) else None
    return out


def may_weigh_positions(scope: ListenerScope, place: CallSite, out: Tensor) -> bool:
    """Whether a softmax over two axes may be weights: its module attends, or was given as many positions."""
    if handwritten.is_attention(place):
        return True
    mixture = any(word in type(place.module).__name__.lower() for word in products.MIXTURES)
    return not mixture and out.shape[-1] in products.positions_around(scope, place)


def open_products(scope: ListenerScope) -> None:
    """From here on products may be those in which weights meet values."""
    if not scope.products:
        PRODUCTS.open()
        scope.products = PRODUCTS.close
    if not scope.around:
        AROUND.open()
        scope.around = AROUND.close


def matmul_kernel(self: Tensor, other: Tensor) -> Tensor:
    frame = sys._getframe(1)

    def run() -> Tensor:
        out: Tensor = ATEN.matmul.default._op_dk(COMPOSITE, self, other)
        return out

    return handwritten.product(self, other, lambda: products.product(self, other, run, frame), frame)


def einsum_kernel(equation: str, tensors: list[Tensor], *, path: list[int] | None = None) -> Tensor:
    frame = sys._getframe(1)

    def run() -> Tensor:
        out: Tensor = ATEN.einsum.default._op_dk(COMPOSITE, equation, tensors, path=path)
        return out

    if len(tensors) != 2 or current_scope() is None:
        return run()
    left, right = tensors

    def of_other_axes() -> Tensor:
        return products.product(left, right, run, frame, axes=product_axes(equation))

    explicit = spell_out(equation, left.ndim, right.ndim)
    for way, weights, values in ((explicit, left, right), (swap_operands(explicit), right, left)):
        axes = mixing_axes(way)
        if axes is not None and handwritten.is_awaited(current_scope(), weights):
            return handwritten.product(weights, axes.align(values), of_other_axes, frame, order=axes.out)
    return handwritten.keep_context(current_scope(), tensors, of_other_axes)


def hear_bmm(run: Run, frame: FrameType, args: tuple[Any, ...]) -> Tensor:
    """Every batched product passes here, also those that matmul and einsum are made of."""
    scope = current_scope()
    if scope is None:
        if frame.f_code is not attention_kernel.__code__:
            notice_thread(frame, "a product of activations", args[-2:], product=True)
        out: Tensor = run()
        return out
    left, right = args[-2:]

    def run_or_judge() -> Tensor:
        return products.product(left, right, run, frame, batched=True)

    out = handwritten.product(left, right, run_or_judge, frame, recorded=False)
    if scope.ledger.scores and not scope.paused:
        open_products(scope)
    return out


def hear_baddbmm(run: Run, frame: FrameType, args: tuple[Any, ...]) -> Tensor:
    """Scores with a bias added, as BLOOM makes them."""
    out: Tensor = run()
    scope = current_scope()
    if scope is not None and scope.pending is None:
        products.judge(scope, args[1], args[2], out, frame)
    return out


def in_place(name: str) -> Callable[..., Tensor]:
    """A batched product that is written to a tensor of the caller's: nothing can stand in its place, so it is named."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(ATEN, packet), overload or "default")

    def kernel(*args: Any, **named: Any) -> Tensor:
        with torch._C._AutoDispatchBelowADInplaceOrView():
            out: Tensor = operator(*args, **named)
        torch.autograd.graph.increment_version(out)  # as torch's kernel does, which ours stands for
        scope, frame = current_scope(), sys._getframe(1)
        if scope is None:
            notice_thread(frame, "a product of activations", args[-2:], product=True)
        elif scope.pending is None:
            products.judge(scope, args[-2], args[-1], out, frame)
        return out

    return kernel


def hear_sigmoid(run: Run, frame: FrameType, args: tuple[Any, ...]) -> Tensor:
    """A sigmoid of scores: weights that need not add up to one."""
    out: Tensor = run()
    scope = current_scope()
    if scope is not None and scope.ledger.fitting(out):
        scope.ledger.sigmoid = ref(out)
    return out


def hear_kernel(name: str) -> Hear:
    """A fused kernel that is not called by torch's own attention function, but by hand."""

    def hear(run: Run, frame: FrameType, args: tuple[Any, ...]) -> Any:
        scope = current_scope()
        if scope is None:
            notice_thread(frame, f"torch's kernel {name}", args[:3])
        elif scope.pending is None:
            products.miss(
                scope, frame, f"torch's kernel {name} was called directly, on q of shape {tuple(args[0].shape)}"
            )
        return run()

    return hear


def nested_kernel(query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Any:
    """What torch takes on a CPU for jagged tensors: the sequences lie behind each other, and are no map together."""
    scope = current_scope()
    if scope is None:
        return ATEN._scaled_dot_product_attention_math.default._op_dk(COMPOSITE, query, key, value, *args, **named)
    if scope.pending is None:
        products.miss(scope, sys._getframe(1), products.JAGGED)
    with paused(scope):
        return ATEN._scaled_dot_product_attention_math.default._op_dk(COMPOSITE, query, key, value, *args, **named)


FUSED = {
    "CPU": ("_scaled_dot_product_flash_attention_for_cpu",),
    "CUDA": (
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_flash_attention_forward",
        "_efficient_attention_forward",
    ),
    "MPS": ("_scaled_dot_product_attention_math_for_mps",),
}
DIRECT = {name: kernels_below(name, hear_kernel(name)) for backend in backends() for name in FUSED[backend]}
BATCHED = {"bmm": kernels_below("bmm", hear_bmm), "baddbmm": kernels_below("baddbmm", hear_baddbmm)}

DOORS = Library(
    {"scaled_dot_product_attention": attention_kernel, "softmax.int": softmax_kernel},
    {**BATCHED, **DIRECT},
    {"_scaled_dot_product_attention_math": nested_kernel},
    plain_below={name: in_place(name) for name in ("bmm.out", "baddbmm_")},
)
# Products are many, also inside every linear layer, so they are intercepted only between scores and values.
PRODUCTS = Library({"matmul": matmul_kernel, "einsum": einsum_kernel})
# These are few, but a model with a fused kernel needs none of them.
AROUND = Library(
    {},
    {
        "sigmoid": kernels_below("sigmoid", hear_sigmoid),
        "sum.dim_IntList": kernels_below("sum.dim_IntList", hear_sum),
    },
)
