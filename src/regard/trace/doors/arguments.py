"""What a call of a module was handed, read from its frame."""

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.trace.doors.call_site import CALL, WRAPPED

STREAMS = ("hidden_states", "inputs_embeds", "query", "tgt", "src", "x", "input", "inputs", "target")
OTHERS = ("mask", "bias", "position", "type", "label", "cos", "sin")


class CallArguments(NamedTuple):
    """What a call of a module was handed."""

    args: tuple[Any, ...]
    named: Mapping[str, Any]

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        for value in self.args:
            yield from within("", value)
        for name, value in self.named.items():
            yield from within(name, value)

    def integers(self) -> list[Tensor]:
        """What may be ids."""
        return [
            x
            for name, x in self.tensors()
            if x.ndim in (1, 2) and x.dtype in (torch.int64, torch.int32) and not any(word in name for word in OTHERS)
        ]

    def stream(self) -> Tensor | None:
        """The tensor that a module works on: the first one of numbers."""
        for x in self.args:
            if is_stream(x):
                return x
        named = self.named
        if named:
            for name in names_of(named).streams:
                if is_stream(named[name]):
                    return named[name]
        return None

    def holds(self, x: Tensor) -> bool:
        """Whether a tensor is among what was handed over, or in a tuple or dictionary of that."""
        for value in (*self.args, *self.named.values()):
            if x is value:
                return True
            if value is None or isinstance(value, Tensor):  # most of them; the rest takes longer to tell
                continue
            if isinstance(value, tuple | list):
                if len(value) < 9:
                    for other in value:
                        if x is other:
                            return True
            elif isinstance(value, Mapping):
                for other in value.values():
                    if x is other:
                        return True
        return False


class ArgumentNames(NamedTuple):
    """Which of the named arguments of a call may be what."""

    inputs: tuple[str, ...]  # tokens, or a picture
    streams: tuple[str, ...]  # what a module works on, the likeliest first


INPUTS = frozenset({"x", "ids", "tokens", "pixel_values"})
NAMES: dict[tuple[str, ...], ArgumentNames] = {}  # the same for every call of a module


def names_of(named: Mapping[str, Any]) -> ArgumentNames:
    """Read once for each list of names."""
    key = tuple(named)
    known = NAMES.get(key)
    if known is None:
        if len(NAMES) > 4096:  # somebody makes up names all the time
            NAMES.clear()
        inputs = tuple(name for name in key if name in INPUTS or name.endswith("input_ids"))
        first = [name for name in STREAMS if name in named]
        others = [name for name in key if name not in first and not any(word in name for word in OTHERS)]
        known = NAMES[key] = ArgumentNames(inputs, (*first, *others))
    return known


def is_stream(x: Any) -> bool:
    return isinstance(x, Tensor) and x.ndim >= 3 and x.is_floating_point()


def within(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Tensors of an argument, also of a tuple or a dictionary of them."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        yield from ((str(key), x) for key, x in value.items() if isinstance(x, Tensor))
    elif isinstance(value, tuple | list) and len(value) < 9:
        yield from ((name, x) for x in value if isinstance(x, Tensor))


def arguments_of(frame: FrameType) -> CallArguments:
    """Read from the frame of a module's call, or of a method of the model."""
    code = frame.f_code
    if code is not CALL:
        here = frame.f_locals
        return CallArguments(tuple(here.get(name) for name in code.co_varnames[1 : code.co_argcount]), {})
    outer = frame.f_back  # holds the arguments and nothing else, so it is read in less time
    here = (outer if outer is not None and outer.f_code is WRAPPED else frame).f_locals
    args, named = here.get("args"), here.get("kwargs")
    return CallArguments(args if isinstance(args, tuple) else (), named if isinstance(named, dict) else {})
