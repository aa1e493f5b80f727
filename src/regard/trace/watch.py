"""`with watch(model) as trace:` any model, unchanged; what it attended to is in the trace."""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from typing import Any

import torch
from torch import nn

from regard.errors import WatchError
from regard.memory import make_room
from regard.trace.capture.naming import Naming
from regard.trace.capture.retention import Retention
from regard.trace.capture.stream_capture import StreamCapture, read_asked
from regard.trace.capture.watcher import Watcher
from regard.trace.doors.axes_hint import make_hints
from regard.trace.doors.handwritten import settle
from regard.trace.doors.install import listening, must_be_watchable
from regard.trace.file import finish, hand_over
from regard.trace.file.stream import Writer
from regard.trace.record.trace import Trace


@contextmanager
def watch(
    model: nn.Module | Any,
    tokenizer: Any = None,
    *,
    layers: str | Sequence[str] | None = None,
    values: bool = True,
    dtype: torch.dtype | None = None,
    to: Any = None,
    device: torch.device | str | None = None,
    gradients: bool = False,
    graph: bool = False,
    heads: Any = None,
    layout: Any = None,
    queries: Any = None,
    keys: Any = None,
    residual: Any = False,
) -> Iterator[Trace]:
    """A trace that fills with what the model attends to while the block runs; the model stays bit for bit the same.

    `model` is any module, or a part of one. `tokenizer` names rows and columns: a tokenizer of `transformers` or
    `tokenizers`, a list of strings, or nothing. `layers` limits what is kept to parts of paths, `values=False` leaves
    v out, `dtype` and `device` say in what and where to keep, `to` names a file that is written while the model runs.
    `gradients=True` also keeps how a loss changes with each mix (for gradient × attention), `graph=True` keeps q and k
    with their graph. `heads` (a number) and `layout` ("batch-major" or "head-major") say how attention that merges
    batch and heads is to be read where the run does not show it; both also as a table by parts of paths. `queries` and
    `keys` name rows and columns where the run cannot tell which tokens they are: a list of tokens, or a dictionary from
    parts of layer paths to such lists. `residual=True` also keeps what attribution needs, in memory: the output of
    each block and MLP; paths of modules, or a dictionary from paths to positions, keep only what these modules gave.

    Nothing is left behind, also after an error. Only this context is watched: other threads and tasks are not.

    >>> import regard, torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with regard.watch(layer, ["a", "b", "c"]) as trace:
    ...     _ = layer(torch.ones(1, 3, 8))
    >>> trace["self_attn"]
    self_attn (self, b 1, h 2, q 3, k 3, computed)
    >>> trace["self_attn"].weights[0, 1, 2]
    tensor([0.3333, 0.3333, 0.3333])
    """
    must_be_watchable(model)
    if to is None:  # what goes to a file is not held
        make_room()
    chosen = (layers,) if isinstance(layers, str) else None if layers is None else tuple(layers)
    writer = None if to is None else Writer(to)
    keeper = Retention(values, dtype, None if device is None else torch.device(device), graph, writer)
    watcher = Watcher(model, keeper, Naming(tokenizer, queries, keys), layers=chosen, gradients=gradients)
    watcher.hints = make_hints(heads, layout, (path for path, _ in watcher.tree.values()))
    if residual is not False and residual is not None:
        asked, sums = read_asked(residual, watcher.tree)
        names = None if isinstance(tokenizer, list | tuple) or hasattr(tokenizer, "tolist") else tokenizer
        watcher.stream = StreamCapture(model, watcher.tree, asked, sums=sums, tokenizer=names)
    if chosen is not None and not any(watcher.wants(path) for path, _ in watcher.tree.values()):
        known = ", ".join(path for path, _ in list(watcher.tree.values())[1:9])
        raise WatchError(f"no part of the model fits layers={layers!r}; its first parts are: {known}")
    trace = Trace(model=type(model).__name__)
    trace._live, trace._over = watcher.runs, False
    trace._prints = LazyFingerprint(model, watcher.modules())
    try:
        with listening(watcher) as scope, nullcontext() if (s := watcher.stream) is None else s.listening(watcher):
            yield trace
            settle(scope)
            watcher.finish()
        if writer is not None:
            trace.notes += watcher.notes
            trace.over()
            hand_over(trace, finish(trace, writer))
    finally:
        trace.notes += [note for note in watcher.notes if note not in trace.notes]
        trace.over()
        if writer is not None:
            writer.abort()  # where the file was finished there is nothing left to leave


class LazyFingerprint:
    """The fingerprint of a model, made when somebody asks, from weights that are still those of the watch."""

    def __init__(self, model: nn.Module, modules: Iterable[nn.Module]) -> None:
        self.model, self.versions = weakref.ref(model), versions_of(modules)

    def __call__(self) -> str:
        from regard.trace.file.fingerprint import fingerprint

        model = self.model()
        return "" if model is None or versions_of(model.modules()) != self.versions else fingerprint(model)


VERSION = attrgetter("_version")


def versions_of(modules: Iterable[nn.Module]) -> int:
    """A number that changes when weights are written to."""
    tables = [module._parameters for module in modules]
    weights = [p for table in tables if table for p in table.values() if p is not None]
    try:
        return sum(map(VERSION, weights))
    except RuntimeError:  # inference tensors count no writes
        return sum(0 if p.is_inference() else p._version for p in weights)
