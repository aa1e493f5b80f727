"""The kernel door: a Python kernel on the composite operators of torch, there only while somebody listens.

The composite `scaled_dot_product_attention`, `softmax`, `matmul` and `einsum` are reached under any bound name, from
scripted code, inside autocast and inference mode; each kernel here runs torch's own composite kernel, so the same
fused kernel computes the same numbers. `bmm` is no composite: it is intercepted below autograd, one key further down.
Removing kernels uses a private method of torch: it stands in this file only.
"""

import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.axes.as_4d import as_4d
from regard.trace.doors import handwritten
from regard.trace.doors.broadcast import share_batch
from regard.trace.doors.call_site import place_of
from regard.trace.doors.change import apply_changes, tell_listeners
from regard.trace.doors.scope import Call, ListenerScope, current_scope, paused

ATEN = torch.ops.aten
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
ATTENTION: Callable[..., Tensor] = ATEN.scaled_dot_product_attention.default._op_dk
OURS = "regard.attention"
Kernels = dict[str, Callable[..., Any]]
Below = dict[str, tuple[Callable[..., Any], Callable[..., Any]]]  # below autograd, and for inference tensors


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
        return run()
    why_not = why_unreadable(query, key)
    if why_not:
        for listener in owners:
            listener.refuse(place, why_not)
        return run()
    q, k, v = share_batch(as_4d(query), as_4d(key), as_4d(value))
    call = Call(
        place,
        "kernel",
        q=q,
        k=k,
        v=v,
        scale=query.shape[-1] ** -0.5 if scale is None else scale,
        mask=mask_four(attn_mask, query),
        causal=is_causal,
        dropout=dropout_p,
        raw=(mask_four(attn_mask, query), is_causal, scale),
    )
    return tell(scope, owners, call, run, shape=as_4d, back=lambda mix: mix.reshape(mix_shape(query, value)))


def mix_shape(query: Tensor, value: Tensor) -> tuple[int, ...]:
    batch = (max(query.shape[0], value.shape[0]),) if query.ndim == 4 else query.shape[:1]
    return (*batch, *query.shape[1:-1], value.shape[-1])


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
    if torch.is_grad_enabled():
        with paused(scope), torch.no_grad():
            call.mix = call.to_bhqe(call.raw_mix.detach())
            tell_listeners(owners, call)
    else:
        with paused(scope):
            call.mix = call.to_bhqe(call.raw_mix)
            tell_listeners(owners, call)
    return mix


def why_unreadable(*xs: Tensor) -> str:
    """Why the numbers of these tensors cannot be kept; empty where they can."""
    for x in xs:
        if x.is_meta:
            return "its tensors are on the meta device and hold no numbers"
        if torch._C._functorch.is_functorch_wrapped_tensor(x):
            return "a torch.func transform (vmap, grad, …) was running, whose tensors stand for many at once"
        if type(x) in (Tensor, nn.Parameter):
            continue
        if type(x).__name__ in ("FakeTensor", "FunctionalTensor"):
            return f"its tensors are of type {type(x).__name__} and hold no numbers"
        if type(x).__name__ == "DTensor":
            return "its tensors are split over devices (DTensor); gather them first"
    return ""


def mask_four(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """The mask of a call with the axes that its q was given."""
    if mask is None or query.ndim == 4:
        return mask
    if query.ndim == 3:
        return mask.unsqueeze(1) if mask.ndim == 3 else mask
    if query.ndim > 4 and mask.ndim > 4:
        return mask.expand(*query.shape[:-2], *mask.shape[-2:]).flatten(0, -4)
    return mask


def softmax_kernel(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    out: Tensor = ATEN.softmax.int._op_dk(COMPOSITE, self, dim, dtype)
    scope = current_scope()
    if scope is not None and out.ndim >= 3 and dim in (-1, out.ndim - 1) and not out.is_nested:
        frame = sys._getframe(1)
        if not is_ours(frame):
            handwritten.softmax_seen(scope, frame, out)
            if scope.candidates and not scope.products:
                PRODUCTS.open()
                scope.products = PRODUCTS.close
    return out


def matmul_kernel(self: Tensor, other: Tensor) -> Tensor:
    def run() -> Tensor:
        out: Tensor = ATEN.matmul.default._op_dk(COMPOSITE, self, other)
        return out

    return handwritten.product(self, other, run, sys._getframe(1))


def einsum_kernel(equation: str, tensors: list[Tensor], *, path: list[int] | None = None) -> Tensor:
    def run() -> Tensor:
        out: Tensor = ATEN.einsum.default._op_dk(COMPOSITE, equation, tensors, path=path)
        return out

    if len(tensors) != 2 or not handwritten.is_mixing(equation):
        return run()
    order = handwritten.order_of(equation)
    return handwritten.product(tensors[0], tensors[1], run, sys._getframe(1), order=order, named=True)


def bmm_kernel(keys: Any, self: Tensor, mat2: Tensor) -> Tensor:
    def run() -> Tensor:
        out: Tensor = ATEN.bmm.default.redispatch(keys & torch._C._after_ADInplaceOrView_keyset, self, mat2)
        return out

    return handwritten.product(self, mat2, run, sys._getframe(1), recorded=False)


@cache
def own_kernel(name: str, backend: str) -> Any:
    """torch's own kernel on this backend, taken before ours stands there."""
    return torch.library.get_kernel(name, backend)


def bmm_inference_kernel(keys: Any, self: Tensor, mat2: Tensor) -> Tensor:
    """The same for inference tensors, which know no key above the backend's own."""

    def run() -> Tensor:
        out: Tensor = own_kernel("aten::bmm", self.device.type.upper()).call_boxed(keys, self, mat2)
        return out

    if not self.is_inference():  # told already, one key above
        return run()
    return handwritten.product(self, mat2, run, sys._getframe(1), recorded=False)


GRACE = 1.0  # seconds; far longer than any thread stands between looking a kernel up and running it


class Library:
    """Kernels that are installed while at least one user lives in the process.

    A kernel must not be taken away while another thread is on its way into it, and torch cannot say whether one is.
    So it goes at once where there is only one thread, and otherwise a moment after the last user has gone; until
    then it hands every call straight on.
    """

    def __init__(self, kernels: Kernels, below: Below | None = None) -> None:
        self.kernels, self.below = kernels, below or {}
        self.lock = threading.RLock()
        self.users = 0
        self.library: torch.library.Library | None = None
        self.waiting: threading.Timer | None = None
        self.others: list[Callable[[], Callable[[], None]]] = []  # further doors: open() gives close()
        self.closing: list[Callable[[], None]] = []

    def open(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                try:
                    self.install()
                except BaseException:
                    self.close()
                    raise

    def install(self) -> None:
        if self.library is None:
            self.library = torch.library.Library("aten", "IMPL")
            for name, kernel in self.kernels.items():
                for backend in backends():
                    for key in (f"Autograd{backend}", backend):
                        self.library.impl(name, kernel, key)
            for name, (kernel, of_inference) in self.below.items():
                self.library.impl(name, kernel, "ADInplaceOrView", with_keyset=True)
                if is_alone():  # beside other threads, which all pass this way, a kernel cannot be exchanged safely
                    for backend in backends():
                        own_kernel(f"aten::{name}", backend)
                        with warnings.catch_warnings():  # torch warns, once, that a kernel is overridden
                            warnings.simplefilter("ignore", UserWarning)
                            self.library.impl(name, of_inference, backend, with_keyset=True)
        for opening in self.others:
            self.closing.append(opening())

    def close(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users:
                return
            while self.closing:
                self.closing.pop()()
            if is_alone():
                self.remove()
            elif self.waiting is None:
                self.wait()

    def wait(self) -> None:
        self.waiting = threading.Timer(GRACE, self.expire)
        self.waiting.daemon = True
        self.waiting.start()

    def expire(self) -> None:
        with self.lock:
            self.waiting = None
            if not self.users:
                self.remove()

    def remove(self) -> None:
        if self.library is not None:
            self.library._destroy()
            self.library = None


def is_alone() -> bool:
    """Whether no other thread could be calling a kernel now."""
    return all(
        isinstance(thread, threading.Timer) or thread is threading.current_thread() for thread in threading.enumerate()
    )


@cache
def backends() -> tuple[str, ...]:
    """The devices of this machine: a kernel for an absent one would only cost time."""
    found = ["CPU"]
    if torch.cuda.is_available():
        found.append("CUDA")
    if torch.backends.mps.is_available():
        found.append("MPS")
    return tuple(found)


DOORS = Library({"scaled_dot_product_attention": attention_kernel, "softmax.int": softmax_kernel})
# Products are many, also inside every linear layer, so they are intercepted only between a softmax and its values.
PRODUCTS = Library({"matmul": matmul_kernel, "einsum": einsum_kernel}, {"bmm": (bmm_kernel, bmm_inference_kernel)})
