"""What stood around an attention call: the tensors that its module and those around it were given, or had by a name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

from torch import Tensor, nn

from regard.trace.doors.call_site import CALL, WRAPPED, CallSite, first_argument

LEVELS = 3  # modules around the attention that are looked at: projections stand in its own module, or one further out


@dataclass(eq=False)
class Surroundings:
    """`Surroundings` are the tensors in one call of a module: what it was given, and what its code has names for."""

    module: nn.Module
    given: list[Tensor] = field(default_factory=list)
    named: list[Tensor] = field(default_factory=list)

    @property
    def tensors(self) -> Iterator[Tensor]:
        """Numbers with channels at their end, each once."""
        known = set()
        for x in (*self.named, *self.given):
            if x.ndim >= 2 and x.is_floating_point() and id(x) not in known:
                known.add(id(x))
                yield x

    def batches(self, positions: set[int]) -> set[int]:
        """How many entries the batch may have had, by what the module was given; empty where that does not say it.

        `positions` are the numbers of queries and keys: what has as many of them shows which of its axes is not batch.
        """
        found: set[int] = set()
        for x in self.given:
            if x.is_floating_point():
                found |= {1} if x.ndim == 2 else batch_sizes(x, positions) if x.ndim == 3 else {x.shape[0]}
            elif x.ndim in (2, 3) and x.element_size() >= 4:  # token ids, or those of several aligned texts
                found.add(x.shape[0])
        return found

    def has(self, positions: set[int]) -> bool:
        """Whether the module was given something with as many positions as there are queries or keys."""
        return any(positions & set(x.shape[:-1]) for x in self.given if x.is_floating_point())


def batch_sizes(x: Tensor, positions: set[int]) -> set[int]:
    """Which of the first two sizes of (b, n, m) or (n, b, m) may be the batch: windows are as short as a batch."""
    first, second = x.shape[0], x.shape[1]
    return {first} if second in positions and first not in positions else {first, second}


def first_given(place: CallSite) -> Tensor | None:
    """The first tensor that the call of a module was given."""
    return next(given_to_call(place), None)


def given_to_call(place: CallSite) -> Iterator[Tensor]:
    """The tensors that the call of a module was given: its method may call others by their names by now."""
    if place.call.f_code is CALL or place.call.f_code is WRAPPED:
        local = place.call.f_locals
        yield from tensors_in([local.get("args"), local.get("kwargs")])
        return
    code = place.method.f_code
    yield from (x for name in code.co_varnames[1 : code.co_argcount] if isinstance(x := place.here.get(name), Tensor))


def surroundings_of(place: CallSite, owns: Callable[[nn.Module], bool]) -> Iterator[Surroundings]:
    """The calls of modules around an attention call, from the inside out, as far as they are watched."""
    frame: FrameType | None = place.method
    here, count = Surroundings(place.module), 0
    while frame is not None and count < LEVELS:
        module = first_argument(frame)
        if isinstance(module, nn.Module):
            if not owns(module):
                break
            if module is not here.module:
                yield here
                here, count = Surroundings(module), count + 1
            code, local = frame.f_code, frame.f_locals
            if code is CALL or code is WRAPPED:
                here.given = list(tensors_in([local.get("args"), local.get("kwargs")]))
            else:
                here.named += tensors_in(list(local.values()))
        frame = frame.f_back
    if count < LEVELS:
        yield here


def tensors_in(values: list[object], depth: int = 2) -> Iterator[Tensor]:
    """The tensors among these, and in the lists and tables among them."""
    for value in values:
        if isinstance(value, Tensor):
            if not value.is_nested:
                yield value
        elif depth and isinstance(value, list | tuple) and len(value) <= 16:
            yield from tensors_in(list(value), depth - 1)
        elif depth and isinstance(value, dict) and len(value) <= 32:
            yield from tensors_in(list(value.values()), depth - 1)
