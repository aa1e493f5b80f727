"""Whether the values of a tensor can be read now, and other questions about the moment.

Checks of *values* (is there a NaN, is a length beyond the keys) run in plain eager mode only: a compiler
has no values yet, a transform has a whole stack of them, and an accelerator would have to stop for them.
"""

from collections.abc import Iterable

import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor

_PLAIN = (Tensor, torch.nn.Parameter)


def is_transformed() -> bool:
    """Whether a torch.func transform (vmap, grad, jvp, …) is running; a compiler's own do not count."""
    return not torch.compiler.is_compiling() and torch._C._functorch.peek_interpreter_stack() is not None


def plain(*xs: Tensor) -> bool:
    """Whether these hold numbers of their own: eager, no transform, neither fake nor meta."""
    if torch.compiler.is_compiling() or is_transformed():
        return False
    return all(type(x) in _PLAIN and not x.is_meta for x in xs)


def readable(x: Tensor) -> bool:
    """Whether the numbers in `x` can be looked at without breaking a graph or stalling a device."""
    return x.device.type == "cpu" and plain(x)


def has_tangent(*xs: Tensor) -> bool:
    """Whether forward-mode derivatives flow through any of `xs`."""
    if forward_ad._current_level < 0:
        return False
    return any(forward_ad.unpack_dual(x).tangent is not None for x in xs)


def version(x: Tensor) -> int | None:
    """The number that changes when `x` is written to; None where torch keeps none."""
    return None if torch.compiler.is_compiling() or x.is_inference() else x._version  # no graph holds is_inference


def versions(xs: Iterable[Tensor | None]) -> tuple[int | None, ...]:
    """The same of several."""
    if torch.compiler.is_compiling():
        return tuple(None for _ in xs)
    return tuple([None if x is None or x.is_inference() else x._version for x in xs])


def is_owned(x: Tensor, beside: tuple[Tensor, ...] = ()) -> bool:
    """Whether `x`, with what is kept beside it, fills its storage, and torch counts writes to it."""
    if x.is_inference():  # torch keeps no version of it, so a later write could not be told
        return False
    storage = x.untyped_storage()
    size, held = storage.nbytes(), x.nbytes
    if 0 in x.stride() and x.numel() > 1:
        return False
    if held < size:
        where = storage.data_ptr()
        places = {x.data_ptr()}  # `x` may stand beside itself
        for y in beside:
            if y.untyped_storage().data_ptr() == where and y.data_ptr() not in places:
                places.add(y.data_ptr())
                held += y.nbytes
    return held == size


def autocasts(x: Tensor) -> bool:
    """Whether autocast would change the dtype of `x`."""
    kind = x.device.type
    return kind != "meta" and torch.is_autocast_enabled(kind)
