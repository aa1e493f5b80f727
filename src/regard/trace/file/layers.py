"""A layer of a file: its tensors are read when somebody asks for them."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from regard.trace.file.array import read_when_asked, tensor_of
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.placement import Placement


def for_all(name: str) -> Any:
    """A property that reads its array when asked; what was kept once for all of a batch comes out for each of it."""

    def get(layer: "FileLayer") -> Tensor | None:
        found: Tensor | None = tensor_of(layer.files[name])
        batch = layer.weights.shape[0]
        return found if found is None or found.shape[0] == batch else found.expand(batch, *found.shape[1:])

    return property(get, read_when_asked(name).fset)


def get_placement(layer: "FileLayer") -> Placement | None:
    found = layer.__dict__.get("placed")
    if callable(found):
        found = layer.__dict__["placed"] = found()
    return found


def set_placement(layer: "FileLayer", found: Placement | Callable[[], Placement] | None) -> None:
    layer.__dict__["placed"] = found


class FileLayer(Layer):
    """A layer whose q, k, v, gradient and place are in a file."""

    files: dict[str, Any]
    placement = property(get_placement, set_placement)
    q, k, v, gradient = (for_all(name) for name in ("q", "k", "v", "gradient"))


class FileSeen(ProofSample):
    """What was copied while the kernel ran, in a file."""

    files: dict[str, Any]
    mix, allowed, weights, used = (read_when_asked(name) for name in ("mix", "allowed", "weights", "used"))
