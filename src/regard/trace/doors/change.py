"""What a model goes on with after its attention: what it computed itself, or what editors made of that."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from regard.attention.observe import MUTED
from regard.trace.doors.scope import Call, ListenerScope


def apply_changes(
    scope: ListenerScope, owners: list[Any], call: Call, mix: Tensor, back: Callable[[Tensor], Tensor]
) -> Tensor:
    """The mix after every editor, in the order they were opened. `call.raw_mix` and `call.to_bhqe` say what it is.

    `back` undoes `call.to_bhqe`. Where nobody changes anything, the very same tensor goes on.
    """
    scope.paused += 1
    try:
        for listener in owners:
            other = listener.change(call)
            if other is not None:
                call.handed_on = mix = back(other).reshape(mix.shape).to(mix.dtype)
    finally:
        scope.paused -= 1
    return mix


def tell_listeners(owners: list[Any], call: Call) -> None:
    """Tell every listener. What goes wrong while one keeps a call is a refusal, never an error in the model's run."""
    if MUTED.get():
        return
    for listener in owners:
        if call.refused:
            listener.refuse(call.place, call.refused)
            continue
        try:
            listener.hear(call)
        except Exception as error:
            listener.refuse(call.place, f"what it computed could not be kept ({type(error).__name__}: {error})")
