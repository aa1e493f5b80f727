"""What a model goes on with after its attention: what it computed itself, or what editors made of that."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from regard.attention.told import UNHEARD
from regard.trace.doors.scene import Call, Scene, deaf


def changed(scene: Scene, owners: list[Any], call: Call, mix: Tensor, back: Callable[[Tensor], Tensor]) -> Tensor:
    """The mix after every editor, in the order they were opened. `call.grown` and `call.shaped` say what it is.

    `back` undoes `call.shaped`. Where nobody changes anything, the very same tensor goes on.
    """
    with deaf(scene):
        for ear in owners:
            other = ear.change(call)
            if other is not None:
                mix = back(other).reshape(mix.shape).to(mix.dtype)
    return mix


def told(owners: list[Any], call: Call) -> None:
    """Tell every listener. What goes wrong while one keeps a call is a refusal, never an error in the model's run."""
    if UNHEARD.get():
        return
    for ear in owners:
        if call.refused:
            ear.refuse(call.place, call.refused)
            continue
        try:
            ear.hear(call)
        except Exception as error:
            ear.refuse(call.place, f"what it computed could not be kept ({type(error).__name__}: {error})")
