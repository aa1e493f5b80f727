"""Kernels below autograd, for operators that are no composite: a kernel above would take the place of their gradient.

`ADInplaceOrView` comes after autograd has recorded a call. Tensors of `inference_mode` skip that key: for them torch's
own kernel is exchanged for one that calls it.
"""

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import Tensor

Run = Callable[[], Any]
Hear = Callable[[Run, FrameType, tuple[Any, ...]], Any]  # how to compute, who asks, with what
BACKENDS = ("CPU", "CUDA", "MPS")
Below = dict[str, tuple[Callable[..., Any], Callable[..., Any]]]  # below autograd, and for inference tensors


@cache
def own_kernel(name: str, backend: str) -> Any:
    """torch's own kernel on this backend, taken before ours stands there; None where it has none."""
    try:
        return torch.library.get_kernel(name, backend)
    except RuntimeError:
        return None


@cache
def keys_after(keys: int) -> tuple[Any, str]:
    """What is left of a call's keys after `ADInplaceOrView`, and the backend, where that is what comes next."""
    rest = torch._C.DispatchKeySet.from_raw_repr(keys) & torch._C._after_ADInplaceOrView_keyset
    backend = rest.highestPriorityTypeId().name
    return rest, backend if backend in BACKENDS else ""


def kernels_below(name: str, hear: Hear) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both kernels of an operator, such as "bmm" or "mul.Tensor"; each asks `hear`, which runs torch's own."""
    packet, _, overload = name.partition(".")
    operator, full = getattr(getattr(torch.ops.aten, packet), overload or "default"), f"aten::{name}"

    def below_autograd(keys: Any, *args: Any, **named: Any) -> Any:
        rest, backend = keys_after(keys.raw_repr())
        own = own_kernel(full, backend) if backend else None

        def run() -> Any:
            if own is not None:  # the kernel for inference tensors, which would come next, only hands it on
                return own.call_boxed(rest, *args, **named)
            return operator.redispatch(rest, *args, **named)

        return hear(run, sys._getframe(1), args)

    def of_inference(keys: Any, *args: Any, **named: Any) -> Any:
        x: Tensor = args[0]

        def run() -> Any:
            return own_kernel(full, x.device.type.upper()).call_boxed(keys, *args, **named)

        if not x.is_inference():  # told already, one key above
            return run()
        return hear(run, sys._getframe(1), args)

    return below_autograd, of_inference
