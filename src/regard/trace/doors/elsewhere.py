"""Attention in another thread than the one that watches: it is not heard, but it can be noticed.

Somebody may run the same model in a thread of his own, unwatched; then the model itself stands in that thread's stack.
A thread that was begun inside `forward` has a part of the model in its stack, or a function that was written inside a
method of such a part, and never the model itself. A function of torch that was handed to a thread as it is has none of
these; then the watched thread holds the same numbers, or waits inside of the model.
"""

import sys
import threading
from types import CodeType, FrameType

from torch import Tensor, nn

from regard.trace.doors.call_site import CallSite, first_argument
from regard.trace.doors.ledger import place_in_memory
from regard.trace.doors.library import IDLE
from regard.trace.doors.scope import SCOPE, Listener, ListenerScope
from regard.trace.doors.surroundings import tensors_in

OPEN: list[tuple[int, ListenerScope]] = []  # every scope that is open in this process, with its thread


def notice_thread(frame: FrameType, what: str, operands: tuple[Tensor, ...], *, product: bool = False) -> None:
    """Somebody computes attention where nobody listens: tell those who watch the module that does.

    Of a product, the operands must be activations, and more than one number each.
    """
    if not OPEN or SCOPE.get() is not None or (product and operands[0].shape[-1] < 2):
        return
    here = threading.get_ident()
    for thread, scope in OPEN:
        if thread == here:
            continue
        for listener in scope.listeners:
            module = part_of(listener, frame) or waiting_part(listener, thread, frame, operands, idle=not product)
            if module is None:
                continue
            if product and not all(scope.ledger.is_activation(x, listener.modules()) for x in operands):
                continue
            listener.miss(CallSite(module, frame, frame, {}), f"{what} ran in another thread")


def part_of(listener: Listener, frame: FrameType) -> nn.Module | None:
    """The module that this thread works for; None where it runs the whole model, or something else."""
    model = next(iter(listener.modules()), None)
    found: nn.Module | None = None
    near: FrameType | None = frame
    while near is not None:
        mine = first_argument(near)
        if mine is model:
            return None
        if found is None:
            held = mine if isinstance(mine, nn.Module) else near.f_locals.get("self")
            known = isinstance(held, nn.Module) and listener.owns(held)
            found = held if isinstance(held, nn.Module) and known else written_in(listener, near.f_code)
        near = near.f_back
    return found


def waiting_part(
    listener: Listener, thread: int, frame: FrameType, operands: tuple[Tensor, ...], *, idle: bool
) -> nn.Module | None:
    """The module in which a watched thread holds the same numbers, or (`idle`) waits for this one; else None.

    A thread that has any module in its stack works for that one.
    """
    near: FrameType | None = frame
    memory = {place_in_memory(x) for x in operands}
    while near is not None:
        if isinstance(first_argument(near), nn.Module):
            return None
        memory |= {place_in_memory(x) for x in tensors_in(list(near.f_locals.values()))}
        near = near.f_back
    memory -= {-1}
    near = sys._current_frames().get(thread)
    found = idle and near is not None and near.f_code.co_filename.endswith(IDLE)
    while near is not None:
        module = first_argument(near)
        found = found or any(place_in_memory(x) in memory for x in tensors_in(list(near.f_locals.values())))
        if isinstance(module, nn.Module) and listener.owns(module):
            return module if found else None
        near = near.f_back
    return None


def written_in(listener: Listener, code: CodeType) -> nn.Module | None:
    """The module in whose method a function was written: the first of its class."""
    owner, inside, _ = code.co_qualname.partition(".<locals>")
    name = owner.rpartition(".")[0]
    if not inside or not name:
        return None
    return next(
        (one for one in listener.modules() if any(kind.__qualname__ == name for kind in type(one).__mro__)), None
    )
