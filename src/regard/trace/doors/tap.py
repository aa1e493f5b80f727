"""Taps: what chosen modules give, heard and perhaps replaced, while their `forward` is stood in for on the instance.

A hook of torch would do the same, but `nn.TransformerEncoder` leaves its fast path where one stands, and gives other
bits. Only the modules that somebody named are tapped, other contexts pass straight on, and every tap is taken away.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import WatchError
from regard.trace.doors.scope import Listener, current_scope

After = Callable[[Any], Any]  # what a module returned → what it shall return


@contextmanager
def tap(modules: Iterable[tuple[nn.Module, After]], listener: Listener) -> Iterator[None]:
    """While the block lasts, `after` gets what each of these modules returns, in contexts that the listener hears."""
    undo: list[Callable[[], None]] = []
    try:
        for module, after in modules:
            undo.append(stand_in(module, after, listener))
        yield
    finally:
        for one in reversed(undo):
            one()


def stand_in(module: nn.Module, after: After, listener: Listener) -> Callable[[], None]:
    """Put a function of ours in the place of a module's `forward`; gives back how to undo it."""
    if isinstance(module, torch.jit.ScriptModule):
        raise WatchError(f"{type(module).__name__} is compiled by TorchScript, so what it gives cannot be tapped")
    own = module.__dict__
    had, before, forward = "forward" in own, own.get("forward"), module.forward

    @wraps(forward)
    def run_and_tell(*args: Any, **named: Any) -> Any:
        found = forward(*args, **named)
        scope = current_scope()
        if scope is None or listener not in scope.listeners:
            return found
        return after(found)

    def close() -> None:
        if had:
            own["forward"] = before
        else:
            own.pop("forward", None)

    own["forward"] = run_and_tell
    return close


FIELDS = ("logits", "last_hidden_state")


def numbers_in(output: Any) -> Tensor | None:
    """The tensor that a module's output is about: itself, its logits or hidden states, or the first of several."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() and output.ndim else None
    for name in FIELDS:
        found = output.get(name) if isinstance(output, dict) else getattr(output, name, None)
        if isinstance(found, Tensor):
            return found
    if isinstance(output, list | tuple):
        return numbers_in(output[0]) if output else None
    return None


def with_numbers(output: Any, new: Tensor) -> Any:
    """The same output with another tensor in the place of `numbers_in(output)`."""
    if isinstance(output, Tensor):
        return new
    for name in FIELDS:
        found = output.get(name) if isinstance(output, dict) else getattr(output, name, None)
        if isinstance(found, Tensor):
            if isinstance(output, dict):
                output[name] = new  # a ModelOutput of `transformers`, too
            else:
                setattr(output, name, new)
            return output
    rest = (with_numbers(output[0], new), *output[1:])
    return type(output)(*rest) if hasattr(output, "_fields") else type(output)(rest)
