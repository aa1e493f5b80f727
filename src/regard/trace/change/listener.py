"""What editing and swapping share: a listener that may hand back another mix in place of the model's own."""

from typing import NamedTuple

from torch import Tensor, nn

from regard.trace.change.aim import LISTED, LayerName
from regard.trace.doors.call_site import CallSite, Tree, tree_of
from regard.trace.doors.listener import ModelListener
from regard.trace.doors.scope import Call
from regard.trace.doors.second_sum import EDITED
from regard.trace.doors.stack import stack_of

SEVERAL = "its call has several softmaxes, so no single map can be told"
NOT_CALLED = (
    "the model was not called in this thread inside the block, it ran under torch.func or as an exported program, or "
    "it has no attention"
)


class CallName(NamedTuple):
    """Which layer a call is of: the path of its module, which call of it this is, and what a trace calls that."""

    path: str
    number: int
    layer: str

    def fits(self, names: tuple[LayerName, ...] | None) -> bool:
        """Whether some of these names mean this layer."""
        return any(name.fits(self.path, self.number) for name in names or ())


class CallCounter:
    """Which call of its module a call is, in one call of the model: ALBERT calls one module many times."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.step: object = None
        self.counts: dict[str, int] = {}

    def next(self, place: CallSite, path: str) -> CallName:
        """Count a call, and name it."""
        step = stack_of(place, self.tree, None).step
        if step is not self.step:
            self.step, self.counts = step, {}
        self.counts[path] = self.counts.get(path, 0) + 1
        return self.last(place, path)

    def last(self, place: CallSite, path: str) -> CallName:
        """The name of the last call that was counted there."""
        number, name = self.counts.get(path, 1), path or type(place.module).__name__
        return CallName(path, number, name if number == 1 else f"{name}#{number}")


class CountingListener(ModelListener):
    """A listener of one model that knows which layer each call is of."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.counter = CallCounter(tree)

    def release(self) -> None:
        """Let go of the model and of every frame."""
        self.tree, self.counter = {}, CallCounter({})


class ChangeListener(CountingListener):
    """A listener that changes what a model computes: it answers a call with another mix, or leaves it as it is.

    A subclass says what becomes of a call (`change_call`), what to do where it turns out to be part of another
    (`retract_call`), and, when the model has run, whether all that was wanted was done (`finish`).
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(tree_of(model))
        self.refused: dict[str, str] = {}  # paths of what could not be changed, and why
        self.missed: dict[str, str] = {}  # the same of attention that no door heard, which says less

    def refuse(self, place: CallSite | None, why: str) -> None:
        self.refused.setdefault(self.path(place), why)

    def miss(self, place: CallSite, what: str) -> None:
        self.missed.setdefault(self.path(place), f"its attention was not heard: {what}")

    def retract(self, place: CallSite) -> None:
        path = self.path(place)
        self.refused.setdefault(path, SEVERAL)
        self.retract_call(self.counter.last(place, path), SEVERAL)

    def sum_again(self, place: CallSite) -> None:
        path = self.path(place)
        self.refused.setdefault(path, EDITED)
        self.retract_call(self.counter.last(place, path), EDITED)

    def change(self, call: Call) -> Tensor | None:
        return self.change_call(call, self.counter.next(call.place, self.path(call.place)))

    def change_call(self, call: Call, name: CallName) -> Tensor | None:
        """Another mix (b, h, q, e), or None."""
        raise NotImplementedError

    def retract_call(self, name: CallName, why: str) -> None:
        """The last call of this name was only part of something else."""
        raise NotImplementedError

    def finish(self) -> None:
        """Raise where the model ran and nothing came of a change."""
        raise NotImplementedError

    def reasons(self) -> dict[str, str]:
        """What could not be changed, and why."""
        return {path or "the model": why for path, why in (self.missed | self.refused).items()}


def list_some(names: list[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"
