"""The base of all listeners: knows the modules of one model and their paths, and lets every call pass."""

from torch import Tensor, nn

from regard.trace.doors.axes_hint import AxesHint, AxesHints
from regard.trace.doors.call_site import CallSite, Tree
from regard.trace.doors.scope import Call

NOTHING_SAID = AxesHint()


class ModelListener:
    """What listeners of one model share; each adds what it hears, what it changes, and how it lets go."""

    def __init__(self, tree: Tree, hints: AxesHints | None = None) -> None:
        self.tree, self.hints = tree, hints or AxesHints()

    def hint(self, place: CallSite) -> AxesHint:
        return self.hints.at(self.path(place)) if self.hints else NOTHING_SAID

    def owns(self, module: nn.Module) -> bool:
        return id(module) in self.tree

    def modules(self) -> list[nn.Module]:
        return [module for _, module in self.tree.values()]

    def path(self, place: CallSite | None) -> str:
        """The path of the module that was called; empty for the model itself, or where the module is not known."""
        return "" if place is None else self.tree[id(place.module)][0]

    def hear(self, call: Call) -> None:
        return None

    def refuse(self, place: CallSite | None, why: str) -> None:
        return None

    def miss(self, place: CallSite, what: str) -> None:
        return None

    def sum_again(self, place: CallSite) -> None:
        return None

    def change(self, call: Call) -> Tensor | None:
        return None
