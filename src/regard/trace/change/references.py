"""What the heads of a model give on something else: on other inputs, or in a trace."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.axes.heads import multiply_grouped
from regard.attention.map.blocks import BUDGET
from regard.errors import TraceError, WatchError
from regard.trace.change.aim import LayerName
from regard.trace.change.listener import CountingListener
from regard.trace.doors.call_site import CallSite, Tree
from regard.trace.doors.scope import Call
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace, find


class HeadRecorder(CountingListener):
    """A listener that keeps what the heads of some layers give, or only the mean of it."""

    def __init__(self, tree: Tree, at: tuple[LayerName, ...] | None, *, means: bool) -> None:
        super().__init__(tree)
        self.at, self.means = at, means
        self.found: dict[str, Tensor] = {}
        self.seen: dict[str, int] = {}  # how many rows a mean was taken over

    def hear(self, call: Call) -> None:
        at = self.counter.next(call.place, self.path(call.place))
        if call.mix is None or (self.at is not None and not at.fits(self.at)):
            return
        name, mix = at.layer, call.mix.detach()
        if not self.means:
            self.found[name] = mix.clone()
            return
        rows = mix.shape[0] * mix.shape[2]
        total = mix.to(torch.promote_types(mix.dtype, torch.float32)).sum((0, 2))
        self.found[name] = self.found[name] + total if name in self.found else total
        self.seen[name] = self.seen.get(name, 0) + rows

    def retract(self, place: CallSite) -> None:
        self.found.pop(self.counter.last(place, self.path(place)).layer, None)

    # A reference

    def mix(self, layer: str) -> Tensor:
        return look_up(self.found, layer)

    def mean(self, layer: str) -> Tensor:
        return look_up(self.found, layer) / self.seen[layer]


def look_up(found: dict[str, Tensor], layer: str) -> Tensor:
    if layer not in found:
        raise WatchError(
            f"the reference inputs never reached {layer}; give inputs on which the model runs the same way"
        )
    return found[layer]


class TraceReference:
    """What the heads of the last run in a trace gave: weights times values, computed when first asked for."""

    def __init__(self, given: Trace | Layer) -> None:
        self.layers = [given] if isinstance(given, Layer) else given.layers
        self.only = isinstance(given, Layer)
        self.made: dict[str, Tensor] = {}

    def mix(self, layer: str) -> Tensor:
        if layer not in self.made:
            try:
                found = self.layers[0] if self.only else find(self.layers, layer)
            except TraceError as error:
                raise WatchError(f"the reference has no layer {layer}: {error}") from None
            self.made[layer] = mix_of(found)
        return self.made[layer]

    def mean(self, layer: str) -> Tensor:
        return self.mix(layer).mean((0, 2))


def mix_of(layer: Layer) -> Tensor:
    """(b, h, q, e) of a layer that was watched, in blocks of rows."""
    if layer.v is None:
        raise WatchError(f"the reference keeps no values of {layer.name}; watch it with values=True")
    b, h, q, k = layer.weights.shape
    height = max(1, BUDGET // max(1, b * h * k))
    v = layer.v.to(layer.weights.dtype)
    parts = [
        multiply_grouped(layer.weights[..., slice(first, first + height), :], v[..., :k, :])
        for first in range(0, q, height)
    ]
    return torch.cat(parts, 2).detach()


def make_feeder(model: Callable[..., Any], inputs: Any) -> Callable[[], Any]:
    """How to call a model on what was given: names to values, a tuple, or one value."""
    if isinstance(inputs, Mapping):
        return lambda: model(**copy_inputs(dict(inputs)))
    if isinstance(inputs, tuple):
        return lambda: model(*copy_inputs(inputs))
    return lambda: model(copy_inputs(inputs))


def copy_inputs(given: Any) -> Any:
    """The same arguments for one more run: a cache among them is copied, because a run writes to it."""
    from copy import deepcopy

    if isinstance(given, dict):
        return {name: copy_inputs(value) for name, value in given.items()}
    if isinstance(given, list | tuple) and type(given) in (list, tuple):
        return type(given)(copy_inputs(value) for value in given)
    if given is None or isinstance(given, Tensor | nn.Module | str | int | float | bool) or callable(given):
        return given
    return deepcopy(given)
