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
Below = dict[str, tuple[Callable[..., Any], Callable[..., Any]]]  # below autograd, and for inference tensors


@cache
def own_kernel(name: str, backend: str) -> Any:
    """torch's own kernel on this backend, taken before ours stands there; None where it has none."""
    try:
        return torch.library.get_kernel(name, backend)
    except RuntimeError:
        return None


def kernels_below(name: str, hear: Hear) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both kernels of an operator, such as "bmm" or "mul.Tensor"; each asks `hear`, which runs torch's own."""
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def below_autograd(keys: Any, *args: Any, **named: Any) -> Any:
        def run() -> Any:
            return operator.redispatch(keys & torch._C._after_ADInplaceOrView_keyset, *args, **named)

        return hear(run, sys._getframe(1), args)

    def of_inference(keys: Any, *args: Any, **named: Any) -> Any:
        x: Tensor = args[0]

        def run() -> Any:
            return own_kernel(f"aten::{name}", x.device.type.upper()).call_boxed(keys, *args, **named)

        if not x.is_inference():  # told already, one key above
            return run()
        return hear(run, sys._getframe(1), args)

    return below_autograd, of_inference
