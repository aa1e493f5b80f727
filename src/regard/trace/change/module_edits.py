"""Edits of what modules give: the residual stream after a block, or the output of an MLP."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import WatchError
from regard.trace.change.aim import Named, places_of
from regard.trace.change.row_edits import must_be_alike
from regard.trace.doors.call_site import Tree
from regard.trace.doors.scope import Listener
from regard.trace.doors.tap import After, numbers_in, tap, with_numbers

OutputFunction = Callable[[Tensor], Tensor | None]


@dataclass(eq=False)
class ModuleEdit:
    """A change of what one module gives, at some positions."""

    said: str
    path: str
    function: OutputFunction
    at: Named = None
    calls: int = 0  # how often its module was called
    rows: int = 0  # how many positions it fell on

    def on(self, x: Tensor) -> Tensor:
        """(…, n, m) after the edit; the very same tensor where it changes nothing."""
        self.calls += 1
        length = x.shape[-2] if x.ndim > 1 else 1
        rows = places_of(self.at, torch.arange(length), length).to(x.device)
        self.rows += len(rows)
        if not len(rows):
            return x
        if x.ndim < 2 or len(rows) == length:
            found = self.function(x)
            return x if found is None else must_be_alike(found, x, self.said).to(x)
        part = x[..., rows, :]
        found = self.function(part)
        return x if found is None else x.index_copy(x.ndim - 2, rows, must_be_alike(found, part, self.said).to(x))

    def must_have_fallen(self) -> None:
        """Raise where the model ran and nothing came of it."""
        if not self.calls:
            raise WatchError(
                f"{self.said} changed nothing: the module was not called in this thread inside the block, as in "
                "torch's native fast path, which computes what is inside of an encoder layer without calling it"
            )
        if not self.rows:
            raise WatchError(f"{self.said} names no position of what {self.path or 'the model'} gave; count from 0")


class ModuleEdits:
    """The edits of what modules give, in the order they were asked for, and the modules that are tapped for them."""

    def __init__(self) -> None:
        self.edits: list[ModuleEdit] = []
        self.tapped: set[str] = set()

    def change(self, path: str, output: Any) -> Any:
        """What a module gave, after its edits."""
        for edit in [one for one in self.edits if one.path == path]:
            x = numbers_in(output)
            if x is None:
                raise WatchError(f"{edit.said} cannot be done: {path or 'the model'} gave no tensor of numbers")
            found = edit.on(x)
            output = output if found is x else with_numbers(output, found)
        return output

    def finish(self) -> None:
        for edit in self.edits:
            edit.must_have_fallen()


def module_at(path: Any, tree: Tree) -> tuple[str, nn.Module]:
    """The one module that a path, or the end of one, names."""
    if not isinstance(path, str):
        raise WatchError(f"a module is named by its path, but {path!r} came; give a string such as 'blocks.1'")
    known = list(tree.values())
    rules: list[Callable[[str], bool]] = [lambda one: one == path, lambda one: f".{one}".endswith(f".{path}")]
    for fits in rules:
        found = [(one, module) for one, module in known if fits(one)]
        if len(found) > 1:
            listed = ", ".join(one for one, _ in found[:8])
            raise WatchError(f"{path!r} fits {len(found)} modules: {listed}; give more of the path")
        if found:
            return found[0]
    blocks = [one for one, _ in known if one.rpartition(".")[2].isdecimal()] or [one for one, _ in known if one]
    raise WatchError(f"no module is called {path!r}; there are: {', '.join(blocks[:8])}")


def record_output(call: Callable[[], Any], module: nn.Module, listener: Listener) -> Tensor:
    """What a module gives when the model is called: a copy, of the last call."""
    found: list[Tensor] = []

    def after(output: Any) -> Any:
        x = numbers_in(output)
        if x is not None:
            found[:] = [x.detach().clone()]
        return output

    taps: list[tuple[nn.Module, After]] = [(module, after)]
    with tap(taps, listener):
        call()
    if not found:
        raise WatchError(
            "the source inputs never reached that module; give inputs on which the model runs the same way"
        )
    return found[0]


def replace_by(source: Tensor, at: Named, source_at: Named, said: str) -> OutputFunction:
    """A function that gives the source's positions in the place of those that it is shown."""
    named = at if source_at is None else source_at

    def function(x: Tensor) -> Tensor:
        length = source.shape[-2] if source.ndim > 1 else 1
        rows = places_of(named, torch.arange(length), length).to(source.device)
        part = source[..., rows, :] if source.ndim > 1 else source
        if part.shape != x.shape and part.shape[1:] == x.shape[1:] and part.shape[0] == 1:
            part = part.expand(x.shape)
        if part.shape != x.shape:
            raise WatchError(
                f"the source of {said} has {tuple(part.shape)} there, but the model gave {tuple(x.shape)}; name as "
                "many positions in both, with at= and source_at="
            )
        return part.to(x)

    return function
