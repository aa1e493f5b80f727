"""What a watch keeps beyond attention, where it was asked to: sums of the residual stream, and what modules gave."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from regard.errors import WatchError
from regard.trace.capture.layer_capture import LayerCapture
from regard.trace.capture.session import Session
from regard.trace.doors.call_site import Tree
from regard.trace.doors.scope import Call, Listener
from regard.trace.doors.tap import After, numbers_in, tap
from regard.trace.record.findings import LayerState
from regard.trace.residual.kept import KeptTensor
from regard.trace.residual.known import MadeTensor
from regard.trace.residual.recorder import ResidualRecorder
from regard.trace.residual.stream import ModuleOutput, ResidualStream, keep_output
from regard.trace.residual.terms import MixTerm

Asked = Mapping[str, tuple[int, ...] | None]  # path of a module → positions, or all


class StreamCapture:
    """`StreamCapture` collects the residual stream of the run that is going on, and gives it to its session."""

    def __init__(self, model: nn.Module, tree: Tree, asked: Asked, *, sums: bool, tokenizer: Any = None) -> None:
        self.model, self.asked = model, asked
        self.recorder = ResidualRecorder(tree) if sums else None
        self.modules = {path or "": module for path, module in tree.values() if path in asked}
        self.tokenizer = tokenizer
        self.stream = self.begin()  # of the call of the model that is going on
        self.session: Session | None = None  # the run that this call belongs to, once it attends
        self.times: dict[str, int] = {}  # of each module in this call

    def begin(self) -> ResidualStream:
        return ResidualStream(tokenizer=self.tokenizer, recorded=self.recorder is not None)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """While the block lasts, modules are tapped and sums are noted."""
        taps: list[tuple[nn.Module, After]] = [
            (module, partial(self.keep_module, path)) for path, module in self.modules.items()
        ]
        taps.append((self.model, self.keep_model))
        with ExitStack() as undo:
            undo.enter_context(tap(taps, listener))
            if self.recorder is not None:
                undo.enter_context(self.recorder)
                undo.callback(self.recorder.release)
            try:
                yield
            except RuntimeError as error:
                if self.recorder is None or "dispatch mode" not in str(error):
                    raise
                raise WatchError(
                    "flex_attention does not run while sums are noted; watch without residual=True"
                ) from error

    def attend(self, path: str) -> None:
        """Something at this path attends, whether or not it can be heard."""
        if self.recorder is not None:
            self.recorder.attending[path] += 1

    def hear(self, call: Call, path: str, held: LayerCapture, session: Session) -> None:
        """What heads gave, where the map that is kept can give it again."""
        self.session = session
        if self.recorder is None or call.raw_mix is None or call.to_bhqe is None:
            return
        first = len(held.blocks) == 1 and held.keeper.values and not held.keeper.graph and call.v is not None
        clear = not call.dropout and LayerState.AXES_UNKNOWN not in call.states and is_weights(call)
        found: MixTerm | MadeTensor | None
        if first and clear and call.handed_on is None:
            found = self.recorder.mark(call.raw_mix, call.to_bhqe, held.name)
            if found is not None:
                self.stream.mixes[held.name] = found
        else:
            found = self.recorder.mark_whole(call.raw_mix if call.handed_on is None else call.handed_on)
        if found is not None:
            self.recorder.attending[path] -= 1

    def keep_module(self, path: str, output: Any) -> Any:
        """A module gave something: keep it, or the positions that were asked for."""
        x = numbers_in(output)
        if x is None or torch._C._current_graph_task_id() != -1:
            return output
        self.times[path] = times = self.times.get(path, 0) + 1
        name = path if times == 1 else f"{path}#{times}"
        at, length = self.asked[path], x.shape[-2] if x.ndim > 1 else 1
        if at is not None:
            x = x.detach()[..., torch.tensor([place for place in at if -length <= place < length], device=x.device), :]
        kept = ModuleOutput([KeptTensor(x) if self.recorder is None else self.recorder.known.keep(x)], at, length)
        self.stream.modules[name] = kept
        return output

    def keep_model(self, output: Any) -> Any:
        """The model returned: how what it gave was made is known now."""
        x = numbers_in(output)
        self.times = {}
        if "" in self.modules:
            self.keep_module("", output)
        if x is not None and self.recorder is not None and torch._C._current_graph_task_id() == -1:
            self.stream.outputs.append(keep_output(x, self.recorder.known.of(x)))
        self.settle()
        return output

    def settle(self) -> None:
        """A call of the model is over, or all is: its run gets what was kept."""
        if self.session is not None:
            if self.session.residual is None:
                self.session.residual = self.begin()
            self.session.residual.extend(self.stream)
        self.stream, self.session = self.begin(), None


def is_weights(call: Call) -> bool:
    """Whether what met the values are the weights themselves, perhaps in another type, and not those after dropout."""
    if call.used is None or call.weights is None or call.used.shape != call.weights.shape:
        return call.used is None
    return torch.equal(call.used, call.weights.to(call.used.dtype))


def read_asked(residual: Any, tree: Tree) -> tuple[Asked, bool]:
    """Which modules' outputs are to be kept and at which positions, and whether sums are noted.

    True is every entry of a list of modules that has modules inside: the blocks.
    """
    if residual is True:
        return dict.fromkeys(blocks_of(tree)), True
    given = {residual: None} if isinstance(residual, str) else residual
    given = given if isinstance(given, Mapping) else dict.fromkeys(given)
    paths = [path for path, _ in tree.values()]
    asked: dict[str, tuple[int, ...] | None] = {}
    for name, at in given.items():
        fitting = [path for path in paths if path == name]
        fitting = fitting or [path for path in paths if f".{path}".endswith(f".{name}")]
        if not isinstance(name, str) or not fitting:
            raise WatchError(
                f"no module fits residual={name!r}; give paths of modules such as {some_blocks(tree)}, or True for all"
            )
        places = None if at is None else (at,) if isinstance(at, int) else tuple(at)
        asked |= dict.fromkeys(fitting, places)
    return asked, False


def blocks_of(tree: Tree) -> list[str]:
    """Entries of lists of modules that have modules inside."""
    return [path for path, module in tree.values() if path.rpartition(".")[2].isdecimal() and module._modules]


def some_blocks(tree: Tree) -> str:
    paths = blocks_of(tree) or [path for path, _ in tree.values() if path]
    return ", ".join(paths[:4]) or "the model's"
